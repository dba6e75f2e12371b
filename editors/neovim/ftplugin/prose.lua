if vim.b.did_ftplugin then
  return
end
vim.b.did_ftplugin = 1

vim.bo.commentstring = '# %s'
vim.bo.comments = ':#'
vim.bo.expandtab = true
vim.bo.shiftwidth = 2
vim.bo.softtabstop = 2
-- Names hold hyphens: lead-writer is one word.
vim.opt_local.iskeyword:append('-')
-- A block is what is indented below its head.
vim.opt_local.foldmethod = 'indent'
vim.opt_local.foldenable = false

vim.b.undo_ftplugin = 'setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< iskeyword< foldmethod< foldenable<'
