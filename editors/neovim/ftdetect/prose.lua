vim.filetype.add({ extension = { prose = 'prose' } })
