if vim.g.loaded_prose then
  return
end
vim.g.loaded_prose = true

local function command(name, action, options)
  vim.api.nvim_create_user_command(name, function(call)
    action(require('prose'), call)
  end, options)
end

command('ProseRun', function(prose, call)
  prose.run({ backend = call.args ~= '' and call.args or nil })
end, { nargs = '?', desc = 'Run this OpenProse program' })

command('ProseRunSimulated', function(prose)
  prose.run({ backend = 'simulate' })
end, { desc = 'Run this OpenProse program with made-up answers' })

command('ProseCancel', function(prose, call)
  prose.cancel(call.args ~= '' and call.args or nil)
end, {
  nargs = '?',
  desc = 'Cancel a running OpenProse program',
  complete = function()
    return require('prose').active_runs()
  end,
})

command('ProseLog', function(prose)
  prose.open_log()
end, { desc = 'Show what OpenProse programs did' })

command('ProseServerText', function(prose)
  prose.server_text()
end, { desc = "Show the language server's copy of this file, with its syntax tree" })

vim.api.nvim_create_autocmd('LspAttach', {
  group = vim.api.nvim_create_augroup('prose_attach', {}),
  callback = function(event)
    local client = event.data and vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'prose' then
      require('prose').attached(event.buf)
    end
  end,
})
