-- For `vim.lsp.enable('prose')` (Neovim 0.11 and later).
return require('prose').lsp_config()
