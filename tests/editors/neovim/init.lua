-- What a person's init.lua would hold, with the plugin folder of this repository.
vim.opt.runtimepath:prepend(assert(os.getenv('PROSE_PLUGIN')))
vim.opt.swapfile = false
require('prose').setup({
  cmd = { assert(os.getenv('PROSE_SERVER')), '--stdio' },
  trusted = os.getenv('PROSE_TRUSTED') == '1',
})
