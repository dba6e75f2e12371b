--- `:checkhealth prose`
local M = {}

function M.check()
  local health = vim.health
  -- Named differently before 0.10.
  local start, ok, warn, err = health.start or health.report_start, health.ok or health.report_ok, health.warn or health.report_warn, health.error or health.report_error
  start('prose')
  if vim.fn.has('nvim-0.8') == 1 then
    ok('Neovim is new enough')
  else
    err('Neovim 0.8 or later is needed')
  end
  local command = require('prose').lsp_config().cmd
  if vim.fn.executable(command[1]) == 1 then
    ok('the language server is ' .. vim.fn.exepath(command[1]))
  else
    err(command[1] .. ' is not executable', 'put it on PATH, or name it: require("prose").setup({ cmd = { "/path/to/prose-lsp", "--stdio" } })')
  end
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients
  if #get({ name = 'prose' }) > 0 then
    ok('the language server is running')
  else
    warn('the language server is not running: no .prose file is open, or setup() was not called')
  end
end

return M
