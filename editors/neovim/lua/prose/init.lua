--- OpenProse for Neovim: starts the language server, runs programs, answers their questions.
--- Works with Neovim 0.8 and later.
local runs = require('prose.runs')

local M = {}

---@class prose.Options
---@field cmd string[]? command line of the server; default `prose-lsp --stdio`, else `prose lsp --stdio`
---@field trusted boolean|fun(root: string?): boolean whether programs may be run with real agents (default false)
---@field backend string? backend that `:ProseRun` uses; default: what prose.toml says
---@field max_parallel integer? sessions of one run at work at once
---@field lint table<string, string>? severity by code
---@field codelens boolean draw the Run lenses and keep them fresh (default true)
---@field notify boolean tell when a run ends (default true)
---@field capabilities table? more client capabilities, as completion plugins ask for
---@field on_attach fun(client: table, bufnr: integer)? called for each buffer
local options = { trusted = false, codelens = true, notify = true, lint = nil }

local ROOT_MARKERS = { 'prose.toml', '.prose', '.git' }

local function has(version)
  return vim.fn.has('nvim-' .. version) == 1
end

local function tell(message, level)
  vim.notify('prose: ' .. message, level or vim.log.levels.INFO)
end

--- Sends a request the way this version of Neovim wants it.
local function request(client, method, params, answered, bufnr)
  if has('0.11') then
    return client:request(method, params, answered, bufnr)
  end
  return client.request(method, params, answered, bufnr)
end

--- The server was asked about a text that has changed meanwhile; asking again is all that's needed.
local CONTENT_MODIFIED = -32801

local function clients(bufnr)
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients
  return get({ name = 'prose', bufnr = bufnr })
end

local function the_client(bufnr)
  local client = clients(bufnr)[1]
  if not client then
    tell('no language server is attached to this buffer; see :help prose-start', vim.log.levels.ERROR)
  end
  return client
end

local function server_command()
  if options.cmd then
    return options.cmd
  end
  if vim.fn.executable('prose-lsp') == 0 and vim.fn.executable('prose') == 1 then
    return { 'prose', 'lsp', '--stdio' }
  end
  return { 'prose-lsp', '--stdio' }
end

--- Calls a command of the server. The buffer is named by its number: Neovim sends the pending edits of that buffer
--- first, and takes 0 for a buffer without any.
local function execute(client, command, argument, answered, bufnr)
  local params = { command = command, arguments = { argument } }
  request(client, 'workspace/executeCommand', params, answered, bufnr or vim.api.nvim_get_current_buf())
end

--- Starts a run. The version sent is that of the text now in the buffer: a lens may have been drawn for an older
--- one, and Neovim sends pending edits before any request.
local function start_run(client, argument, tries)
  tries = tries or 3
  argument = vim.deepcopy(argument)
  local bufnr = vim.uri_to_bufnr(argument.uri)
  argument.version = vim.lsp.util.buf_versions[bufnr] or argument.version
  argument.backend = argument.backend or options.backend
  execute(client, 'prose.run', argument, function(err, result)
    if err and err.code == CONTENT_MODIFIED and tries > 1 then
      start_run(client, argument, tries - 1)
    elseif err then
      tell(err.message or vim.inspect(err), vim.log.levels.ERROR)
    elseif result and result.runId then
      runs.started(result.runId, vim.fn.fnamemodify(vim.uri_to_fname(argument.uri), ':t'))
    end
  end, bufnr)
end

--- Runs `ask(answer)` and returns what `answer` was called with, without blocking the editor. Handlers of requests
--- run in a coroutine since Neovim 0.9; where they don't, the request is answered with `unanswered` at once and
--- `late` takes the answer when it comes.
local function await(ask, unanswered, late)
  local thread, is_main = coroutine.running()
  if not thread or is_main then
    ask(late)
    return unanswered
  end
  local answered, value, waiting
  ask(function(given)
    if answered then
      return
    end
    answered, value = true, given
    if waiting then
      coroutine.resume(thread)
    end
  end)
  while not answered do
    waiting = true
    coroutine.yield()
  end
  return value
end

local OTHER = 'Other…'

local function ask_input(params, answer)
  local function type_it()
    vim.ui.input({ prompt = ('%s (%s): '):format(params.prompt, params.name) }, answer)
  end
  local choices = params.options
  if type(choices) ~= 'table' or #choices == 0 then
    return type_it()
  end
  choices = vim.list_extend(vim.list_extend({}, choices), { OTHER })
  vim.ui.select(choices, { prompt = params.prompt, kind = 'prose.input' }, function(chosen)
    if chosen == OTHER then
      type_it()
    else
      answer(chosen)
    end
  end)
end

local function ask_approval(params, answer)
  local lines = { 'This program wants to fetch remote programs:' }
  for _, target in ipairs(params.targets) do
    lines[#lines + 1] = '  ' .. target
  end
  lines[#lines + 1] = ('Type "%s" to allow it: '):format(params.phrase)
  vim.ui.input({ prompt = table.concat(lines, '\n') }, function(typed)
    answer(typed == params.phrase and typed or '')
  end)
end

local handlers = {
  ['prose/runEvent'] = function(_, params)
    runs.record(params.runId, params.event, options.notify)
  end,

  ['prose/input'] = function(_, params, context)
    local value = await(function(answer)
      ask_input(params, answer)
    end, nil, function(late)
      local client = vim.lsp.get_client_by_id(context.client_id)
      if client and late ~= nil then
        execute(client, 'prose.answer', { runId = params.runId, requestId = params.requestId, value = late })
      end
    end)
    return { value = value == nil and vim.NIL or value }
  end,

  ['prose/approveImports'] = function(_, params)
    -- There is no late answer to this one: an unanswered request is a refusal.
    local reply = await(function(answer)
      ask_approval(params, answer)
    end, '', function()
      tell('this Neovim cannot answer here; run the program with `prose run --approve-imports`', vim.log.levels.WARN)
    end)
    return { reply = reply }
  end,
}

--- The client configuration: what `vim.lsp.start`, `vim.lsp.config` and other starters take.
---@return table
function M.lsp_config()
  local capabilities = vim.tbl_deep_extend(
    'force',
    vim.lsp.protocol.make_client_capabilities(),
    options.capabilities or {},
    { experimental = { prose = { runEvent = true, input = true, approveImports = true } } }
  )
  local config = {
    name = 'prose',
    cmd = server_command(),
    filetypes = { 'prose' },
    capabilities = capabilities,
    handlers = handlers,
    -- Lenses and code actions arrive here.
    commands = {
      ['prose.run'] = function(command, context)
        local client = vim.lsp.get_client_by_id(context.client_id)
        if client then
          start_run(client, command.arguments[1])
        end
      end,
    },
    before_init = function(params, started)
      local trusted = options.trusted
      if type(trusted) == 'function' then
        trusted = trusted(started.root_dir) == true
      end
      params.initializationOptions = {
        trusted = trusted,
        backend = options.backend,
        maxParallel = options.max_parallel,
        lint = options.lint,
      }
    end,
    on_exit = vim.schedule_wrap(function()
      runs.server_stopped()
    end),
    on_attach = options.on_attach,
  }
  if has('0.11') then
    config.root_markers = ROOT_MARKERS
  end
  return config
end

--- Takes options and starts the server for every .prose buffer, now and later.
---@param given prose.Options?
function M.setup(given)
  options = vim.tbl_extend('force', options, given or {})
  if has('0.11') then
    vim.lsp.config('prose', M.lsp_config())
    vim.lsp.enable('prose')
    return
  end
  local function start(bufnr)
    local config = M.lsp_config()
    local marker = vim.fs.find(ROOT_MARKERS, { upward = true, path = vim.fs.dirname(vim.api.nvim_buf_get_name(bufnr)) })[1]
    config.root_dir = marker and vim.fs.dirname(marker) or vim.fs.dirname(vim.api.nvim_buf_get_name(bufnr))
    vim.lsp.start(config, { bufnr = bufnr })
  end
  vim.api.nvim_create_autocmd('FileType', {
    group = vim.api.nvim_create_augroup('prose_start', {}),
    pattern = 'prose',
    callback = function(event)
      start(event.buf)
    end,
  })
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].filetype == 'prose' then
      vim.api.nvim_buf_call(bufnr, function()
        start(bufnr)
      end)
    end
  end
end

--- Called when the server has attached to a buffer.
---@param bufnr integer
function M.attached(bufnr)
  if not options.codelens then
    return
  end
  if has('0.12') and vim.lsp.codelens.enable then
    vim.lsp.codelens.enable(true, { bufnr = bufnr })
    return
  end
  local function refresh()
    vim.lsp.codelens.refresh(has('0.10') and { bufnr = bufnr } or nil)
  end
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'BufWritePost', 'TextChanged' }, {
    group = vim.api.nvim_create_augroup('prose_lenses_' .. bufnr, {}),
    buffer = bufnr,
    callback = refresh,
  })
  refresh()
end

--- Runs the program in a buffer, unsaved text included.
---@param call { backend: string?, bufnr: integer? }?
function M.run(call)
  call = call or {}
  local bufnr = call.bufnr or vim.api.nvim_get_current_buf()
  local client = the_client(bufnr)
  if client then
    start_run(client, { uri = vim.uri_from_bufnr(bufnr), backend = call.backend })
  end
end

--- Cancels a run; without an id the only one, or the one chosen.
---@param run_id string?
function M.cancel(run_id)
  local active = runs.active()
  local function cancel(chosen)
    local client = chosen and (clients(0)[1] or clients()[1])
    if client then
      execute(client, 'prose.cancel', { runId = chosen }, function(err)
        if err then
          tell(err.message or vim.inspect(err), vim.log.levels.ERROR)
        end
      end)
    end
  end
  if run_id then
    cancel(run_id)
  elseif #active == 0 then
    tell('no program is running')
  elseif #active == 1 then
    cancel(active[1])
  else
    vim.ui.select(active, { prompt = 'Cancel which run?', format_item = runs.label }, cancel)
  end
end

--- Ids of the runs under way.
---@return string[]
function M.active_runs()
  return runs.active()
end

--- Opens the log of runs in a split, or goes to the window that shows it.
function M.open_log()
  runs.open()
end

--- Shows the server's own copy of the buffer, for bug reports.
function M.server_text()
  local bufnr = vim.api.nvim_get_current_buf()
  local client = the_client(bufnr)
  if not client then
    return
  end
  local function show(result)
    local lines = vim.split(result.text, '\n')
    if type(result.tree) == 'string' then
      vim.list_extend(lines, { string.rep('-', 40) })
      vim.list_extend(lines, vim.split(result.tree, '\n'))
    end
    vim.cmd('botright vnew')
    vim.bo.buftype = 'nofile'
    vim.bo.bufhidden = 'wipe'
    vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
    vim.bo.modifiable = false
  end
  local function ask(tries)
    request(client, 'prose/viewText', { uri = vim.uri_from_bufnr(bufnr) }, function(err, result)
      if result then
        show(result)
      elseif err and err.code == CONTENT_MODIFIED and tries > 1 then
        ask(tries - 1)
      else
        tell(err and err.message or 'no answer', vim.log.levels.ERROR)
      end
    end, bufnr)
  end
  ask(3)
end

return M
