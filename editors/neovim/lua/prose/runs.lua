--- The runs this editor hears of, and the log they write: one line for each event.
local M = {}

local labels = {} ---@type table<string, string> label by run id, of the runs under way
local ended = {} ---@type table<string, boolean>
local begun = {} ---@type table<string, string> what a place in a run is about, until it ends
local buffer ---@type integer?

local LONGEST = 160

--- What nobody reads along with: bookkeeping, and a session's text, which comes in pieces and whole at its end.
local SILENT = {
  statement_started = true,
  statement_finished = true,
  session_text = true,
  session_usage = true,
  decode_started = true,
  decode_finished = true,
}

local function one_line(text)
  text = vim.trim((text:gsub('%s+', ' ')))
  return vim.fn.strchars(text) > LONGEST and vim.fn.strcharpart(text, 0, LONGEST - 1) .. '…' or text
end

local function given(value)
  return value ~= nil and value ~= vim.NIL and value ~= ''
end

local function show(value)
  if type(value) == 'string' then
    return one_line(value)
  end
  return one_line(vim.inspect(value, { newline = '', indent = '' }))
end

--- What an event is about, in the words of the program.
local function subject(event)
  local parts = {}
  for _, key in ipairs({ 'program', 'agent', 'name', 'label', 'condition', 'text', 'tool', 'detail', 'code', 'message' }) do
    if given(event[key]) then
      parts[#parts + 1] = show(event[key])
    end
  end
  if type(event.binding) == 'table' and event.type == 'bound' then
    parts[#parts + 1] = event.binding.name
  end
  if event.type == 'construct_started' then
    table.insert(parts, 1, (event.kind:gsub('_', ' ')))
  end
  if given(event.index) then
    parts[#parts + 1] = '#' .. event.index
  end
  return table.concat(parts, ' · ')
end

local function line_of(run_id, event)
  local key = event.effect or event.construct or event.frame
  key = key and table.concat({ run_id, vim.inspect(key), tostring(event.index) }, ' ')
  local about = subject(event)
  if key and event.type:find('_started$') then
    begun[key] = about
  elseif key and event.type:find('_finished$') then
    about, begun[key] = begun[key] or about, nil
  end
  local how = event['end'] or event.status
  local failed = how == 'failed' or event.type == 'warning'
  local sign = failed and '!' or event.type:find('_started$') and '▸' or event.type:find('_finished$') and '■' or '·'
  local parts = { sign, (event.type:gsub('_', ' ')) }
  for _, part in ipairs({ about, how ~= 'ok' and how or '', event.summary or '' }) do
    if given(part) then
      parts[#parts + 1] = show(part)
    end
  end
  if type(event.verdict) == 'table' then
    parts[#parts + 1] = show(event.verdict.decision) .. ': ' .. show(event.verdict.reason)
  end
  if type(event.error) == 'table' and event.error.message then
    parts[#parts + 1] = show(event.error.message)
  end
  return table.concat(parts, ' ')
end

local function log_buffer()
  if buffer and vim.api.nvim_buf_is_valid(buffer) then
    return buffer
  end
  buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, 'prose://runs')
  vim.bo[buffer].filetype = 'proselog'
  vim.bo[buffer].modifiable = false
  return buffer
end

local function append(line)
  local log = log_buffer()
  local count = vim.api.nvim_buf_line_count(log)
  local empty = count == 1 and vim.api.nvim_buf_get_lines(log, 0, 1, false)[1] == ''
  vim.bo[log].modifiable = true
  vim.api.nvim_buf_set_lines(log, empty and 0 or count, -1, false, { line })
  vim.bo[log].modifiable = false
  -- Windows whose cursor is at the end follow.
  for _, window in ipairs(vim.fn.win_findbuf(log)) do
    if vim.api.nvim_win_get_cursor(window)[1] >= count then
      vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(log), 0 })
    end
  end
end

--- A run was accepted. Its events may have come before this answer, its end included.
function M.started(run_id, label)
  if not ended[run_id] then
    labels[run_id] = label
  end
end

function M.record(run_id, event, notify)
  if event.type == 'run_started' then
    -- A run that waited for an answer goes on under its own id.
    ended[run_id] = nil
  end
  if not labels[run_id] and not ended[run_id] then
    labels[run_id] = run_id
  end
  if not SILENT[event.type] then
    append(('%s %s %s'):format(os.date('%H:%M:%S'), run_id:sub(-6), line_of(run_id, event)))
  end
  if event.type ~= 'run_finished' then
    return
  end
  local label = labels[run_id] or run_id
  labels[run_id], ended[run_id] = nil, true
  if notify then
    local level = event.status == 'failed' and vim.log.levels.ERROR or vim.log.levels.INFO
    vim.notify(('prose: %s %s (:ProseLog)'):format(label, event.status or 'finished'), level)
  end
  vim.api.nvim_exec_autocmds('User', {
    pattern = 'ProseRunFinished',
    modeline = false,
    data = { run_id = run_id, status = event.status, event = event },
  })
end

--- The server is gone, and with it every run it held.
function M.server_stopped()
  for run_id in pairs(labels) do
    append(('%s %s ! the language server stopped; `prose resume %s` continues this run'):format(os.date('%H:%M:%S'), run_id:sub(-6), run_id))
  end
  labels, begun = {}, {}
end

---@return string[]
function M.active()
  local ids = vim.tbl_keys(labels)
  table.sort(ids)
  return ids
end

---@return string
function M.label(run_id)
  return ('%s (%s)'):format(labels[run_id] or '', run_id)
end

function M.open()
  local log = log_buffer()
  local window = vim.fn.win_findbuf(log)[1]
  if window then
    vim.api.nvim_set_current_win(window)
    return
  end
  vim.cmd('botright 12split')
  vim.api.nvim_win_set_buf(0, log)
  vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(log), 0 })
end

return M
