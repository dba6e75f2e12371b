-- Runs inside the real Neovim, started by run.mjs with a scratch workspace as its folder.
local notified = {}
local suite = assert(os.getenv('PROSE_SUITE'))
local PATIENCE = 60000 -- only a hang meets it
local passed, failed = 0, 0

local function say(text)
  io.stdout:write(text .. '\n')
end

local function short(value)
  return (vim.inspect(value):gsub('%s+', ' ')):sub(1, 160)
end

local function check(name, body)
  local begun = vim.loop.hrtime()
  local ok, shown = xpcall(body, debug.traceback)
  local took = math.floor((vim.loop.hrtime() - begun) / 1e6)
  if ok then
    passed = passed + 1
    say(('ok   %s%s (%d ms)'):format(name, shown ~= nil and ' -- ' .. (type(shown) == 'string' and shown or short(shown)) or '', took))
  else
    failed = failed + 1
    say(('FAIL %s -- %s'):format(name, shown))
  end
end

local function until_(what, probe)
  local found
  if not vim.wait(PATIENCE, function()
    found = probe()
    return found
  end, 20) then
    error('gave up waiting for ' .. what .. '; told ' .. short(notified), 2)
  end
  return found
end

local function equal(a, b)
  if a ~= b then
    error(('%s is not %s'):format(short(a), short(b)), 2)
  end
end

vim.notify = function(message, level)
  notified[#notified + 1] = { message = message, level = level }
end
local function told(pattern)
  for _, each in ipairs(notified) do
    if each.message:find(pattern) then
      return each
    end
  end
end

local finished = {}
vim.api.nvim_create_autocmd('User', {
  pattern = 'ProseRunFinished',
  callback = function(event)
    finished[#finished + 1] = event.data
  end,
})
--- Does `action`, waits for one more run to end and returns it.
local function run(action)
  local before = #finished
  action()
  return until_('the end of the run', function()
    return finished[before + 1]
  end)
end

local function request(method, params)
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, PATIENCE) or {}) do
    return answer.result
  end
end
--- Position `into` characters behind the start of `needle`.
local function at(needle, into)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local column = line:find(needle, 1, true)
    if column then
      return {
        textDocument = { uri = vim.uri_from_bufnr(0) },
        position = { line = number - 1, character = column - 1 + (into or 0) },
      }
    end
  end
  error(needle .. ' is not in the buffer', 2)
end

local function log_text()
  local log = vim.fn.bufnr('prose://runs')
  return log > 0 and table.concat(vim.api.nvim_buf_get_lines(log, 0, -1, false), '\n') or ''
end

local function attached()
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients
  return until_('the server', function()
    local client = get({ name = 'prose', bufnr = 0 })[1]
    return client and client.initialized and client
  end)
end

local function errors()
  return vim.diagnostic.get(0, { severity = vim.diagnostic.severity.ERROR })
end

local suites = {}

function suites.trusted()
  vim.cmd('edit broken.prose')
  check('file type, comment sign and indentation', function()
    equal(vim.bo.filetype, 'prose')
    equal(vim.bo.commentstring, '# %s')
    equal(vim.bo.shiftwidth, 2)
  end)
  check('the server attaches', function()
    attached()
  end)
  check('an undefined agent is an error where it stands', function()
    local found = until_('an error', function()
      return errors()[1]
    end)
    local line = vim.api.nvim_buf_get_lines(0, found.lnum, found.lnum + 1, false)[1]
    equal(line:sub(found.col + 1, found.end_col), 'reviewr')
    return found.message
  end)
  check('mending it takes the error away', function()
    equal(#errors(), 1)
    vim.cmd([[%s/reviewr$/reviewer/]])
    until_('no error', function()
      return #errors() == 0
    end)
  end)
  check('hover on an agent tells about it', function()
    local hover = request('textDocument/hover', at('session: reviewer', 10))
    local text = type(hover.contents) == 'table' and (hover.contents.value or short(hover.contents)) or hover.contents
    assert(text:find('reviewer') and text:find('opus'), text)
  end)
  check('going to the definition of an agent', function()
    local place = at('session: reviewer', 10).position
    vim.api.nvim_win_set_cursor(0, { place.line + 1, place.character })
    vim.lsp.buf.definition()
    until_('the jump', function()
      return vim.api.nvim_get_current_line():find('^agent reviewer:')
    end)
  end)
  check('completion offers the agents after session:', function()
    local answer = request('textDocument/completion', at('session: reviewer', 9))
    local labels = vim.tbl_map(function(item)
      return item.label
    end, answer.items or answer)
    assert(vim.tbl_contains(labels, 'writer') and vim.tbl_contains(labels, 'reviewer'), short(labels))
  end)

  vim.cmd('edit! hello.prose')
  check('the lens runs the program to its end', function()
    attached()
    local lenses = until_('lenses', function()
      local all = vim.lsp.codelens.get(0)
      return #all >= 2 and all[2].command and all
    end)
    local simulated
    for _, lens in ipairs(lenses) do
      if lens.command.title:lower():find('simulated') then
        simulated = lens
      end
    end
    assert(simulated, short(lenses))
    vim.api.nvim_win_set_cursor(0, { simulated.range.start.line + 1, 0 })
    -- Several lenses on the line: Neovim asks which one.
    vim.ui.select = function(items, options, chosen)
      for _, item in ipairs(items) do
        if options.format_item(item):lower():find('simulated') then
          return chosen(item)
        end
      end
      error('no simulated lens to choose')
    end
    local ended = run(function()
      vim.lsp.codelens.run()
    end)
    equal(ended.status, 'completed')
    return ended.run_id
  end)
  check('the log shows it, a line an event, and the person is told', function()
    local text = log_text()
    assert(text:find('session started') and text:find('run finished.*completed'), text)
    until_('the message', function()
      return told('hello.prose completed')
    end)
    return text:match('[^\n]*$')
  end)
  check(':ProseRunSimulated runs unsaved text', function()
    vim.api.nvim_buf_set_lines(0, -1, -1, false, { '', 'session "One more"' })
    local ended = run(function()
      vim.cmd('ProseRunSimulated')
    end)
    equal(ended.status, 'completed')
    assert(log_text():find('One more', 1, true), log_text())
    vim.cmd('edit!')
    -- Reading the file again detaches the server, and the file type attaches it anew.
    until_('the server to be attached again', function()
      local get = vim.lsp.get_clients or vim.lsp.get_active_clients
      return #get({ bufnr = 0 }) > 0
    end)
  end)
  check(':ProseLog shows the log', function()
    vim.cmd('ProseLog')
    assert(vim.api.nvim_buf_get_name(0):find('prose://runs', 1, true))
    vim.cmd('close')
  end)
  check(":ProseServerText shows the buffer's text", function()
    local text = vim.api.nvim_buf_get_lines(0, 0, -1, false)
    vim.cmd('ProseServerText')
    until_('the window', function()
      return vim.bo.buftype == 'nofile'
    end)
    equal(table.concat(vim.api.nvim_buf_get_lines(0, 0, #text, false), '\n'), table.concat(text, '\n'))
    vim.cmd('close')
  end)
  check('words of the language have their colours', function()
    local function group(needle)
      local place = at(needle).position
      return vim.fn.synIDattr(vim.fn.synID(place.line + 1, place.character + 1, 1), 'name')
    end
    equal(group('agent writer'), 'proseDeclare')
    equal(group('writer:'), 'proseAgentName')
    equal(group('model:'), 'proseProperty')
    equal(group('{draft}'), 'proseInterpolation')
    equal(group('**both'), 'proseDiscretion')
    equal(group('parallel:'), 'proseStatement')
    equal(group('session "Publish"'), 'proseStatement')
    equal(group('"Publish"'), 'proseString')
  end)
  check('Enter below a head indents', function()
    vim.cmd('enew | set filetype=prose')
    vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes('iif **good**:<CR>session "a"<CR>else:<CR>session "b"<Esc>', true, false, true), 'xt', false)
    equal(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n'), 'if **good**:\n  session "a"\nelse:\n  session "b"')
    vim.cmd('bwipeout!')
  end)
end

function suites.untrusted()
  vim.cmd('edit hello.prose')
  check('Run is refused in words', function()
    attached()
    vim.cmd('ProseRun')
    local message = until_('the refusal', function()
      return told('trust')
    end)
    equal(#finished, 0)
    return message.message
  end)
  check('Run simulated runs', function()
    equal(run(function()
      vim.cmd('ProseRunSimulated')
    end).status, 'completed')
  end)
end

function suites.questions()
  vim.cmd('edit hello.prose')
  attached()
  local answers = {}
  local record = require('prose.runs').record
  require('prose.runs').record = function(run_id, event, ...)
    if event.type == 'answered' then
      answers[#answers + 1] = event
    end
    return record(run_id, event, ...)
  end
  local function ask(backend)
    equal(run(function()
      vim.cmd('ProseRun ' .. backend)
    end).status, 'completed')
    return answers[#answers]
  end
  check('a choice goes through vim.ui.select', function()
    -- Later, as a picker would: the editor must not wait for it.
    vim.ui.select = function(items, _, chosen)
      vim.defer_fn(function()
        chosen(items[2])
      end, 20)
    end
    equal(ask('choice').value, 'green')
  end)
  check('an input goes through vim.ui.input', function()
    vim.ui.input = function(options, typed)
      assert(options.prompt:find('Which one'))
      vim.defer_fn(function()
        typed('blue')
      end, 20)
    end
    equal(ask('input').value, 'blue')
  end)
  check('a dismissed input answers nothing', function()
    vim.ui.input = function(_, typed)
      typed(nil)
    end
    local value = ask('input').value
    assert(value == nil or value == vim.NIL, short(value))
  end)
  check('remote programs are fetched only for the phrase', function()
    local shown
    vim.ui.input = function(options, typed)
      shown = options.prompt
      typed('yes')
    end
    equal(ask('approve').reply, '')
    assert(shown:find('https://example.org/a.prose', 1, true), shown)
    vim.ui.input = function(_, typed)
      typed('yes please')
    end
    equal(ask('approve').reply, 'yes please')
  end)
  check('the server is told what the client can show, and the trust', function()
    local event = ask('hello')
    equal(event.experimental.runEvent and event.experimental.input and event.experimental.approveImports, true)
    equal(event.options.trusted, true)
  end)
  check('a run can be cancelled', function()
    local ended = run(function()
      vim.cmd('ProseRun endless')
      until_('the start', function()
        return log_text():find('run started[^\n]*$')
      end)
      vim.cmd('ProseCancel')
    end)
    equal(ended.status, 'cancelled')
  end)
end

local version = vim.version()
say(('Neovim %d.%d.%d, %s'):format(version.major, version.minor, version.patch, suite))
local ok, problem = xpcall(suites[suite], debug.traceback)
if not ok then
  failed = failed + 1
  say('FAIL ' .. suite .. ' -- ' .. problem)
end
say(('%d passed, %d failed'):format(passed, failed))
vim.cmd(failed > 0 and 'cquit 1' or 'qall!')
