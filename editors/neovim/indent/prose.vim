" Indentation of OpenProse: deeper below a line that ends in a colon, back at elif, else, catch and finally.
if exists('b:did_indent')
  finish
endif
let b:did_indent = 1

setlocal indentexpr=ProseIndent(v:lnum)
setlocal indentkeys=!^F,o,O,<:>
let b:undo_indent = 'setlocal indentexpr< indentkeys<'

if exists('*ProseIndent')
  finish
endif

function! s:InText(lnum) abort
  " The line starts inside a string or a discretion, where every column is the author's.
  let l:stack = synstack(a:lnum, 1)
  return !empty(l:stack) && synIDattr(l:stack[0], 'name') =~# '^prose\%(Triple\|Discretion\)'
endfunction

function! ProseIndent(lnum) abort
  if s:InText(a:lnum)
    return -1
  endif
  let l:above = prevnonblank(a:lnum - 1)
  while l:above > 0 && s:InText(l:above)
    let l:above = prevnonblank(l:above - 1)
  endwhile
  if l:above == 0
    return 0
  endif
  let l:indent = indent(l:above)
  if getline(a:lnum) =~# '^\s*\%(elif\>.*\|else\|catch\>.*\|finally\)\s*:\s*\%(#.*\)\?$'
    " Belongs to the nearest head above that it can continue.
    let l:line = l:above
    while l:line > 0
      if getline(l:line) =~# '^\s*\%(if\|elif\|try\|catch\)\>' && indent(l:line) <= indent(a:lnum) && !s:InText(l:line)
        return indent(l:line)
      endif
      let l:line = prevnonblank(l:line - 1)
    endwhile
  endif
  if getline(l:above) =~# ':\s*\%(#.*\)\?$' && getline(l:above) !~# '^\s*#'
    return l:indent + shiftwidth()
  endif
  return l:indent
endfunction
