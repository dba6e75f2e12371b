" Colours for OpenProse. The language server's semantic tokens, where Neovim draws them, lie on top.
if exists('b:current_syntax')
  finish
endif

syntax case match
" A string may hold a whole page; look back that far for its start.
syntax sync minlines=300

" Text
syntax match proseEscape /\\[\\"nt{}]/ contained
syntax match proseBadEscape /\\[^\\"nt{}]/ contained
syntax match proseInterpolation /{\h\%(\w\|-\w\@=\)*\%(\.\h\%(\w\|-\w\@=\)*\|\[\%(\d\+\|\h\w*\)\]\)*}/ contained
syntax region proseString start=/"/ end=/"\|$/ skip=/\\./ contains=proseEscape,proseBadEscape,proseInterpolation
syntax region proseTriple start=/"""/ end=/"""\ze\%([^"]\|$\)/ contains=proseEscape,proseInterpolation
syntax region proseDiscretion start=/\*\*/ end=/\*\*\|^\s*$/ contains=proseInterpolation
syntax region proseDiscretionLong start=/\*\*\*/ end=/\*\*\*/ contains=proseInterpolation
syntax match proseNumber /\<\d\+\%(\.\d\+\)\?\%(ms\|[smhd]\)\?\>/
syntax keyword proseConstant true false null

" Words that mean something wherever a statement or expression may stand
syntax keyword proseConditional if elif else choice option
syntax keyword proseRepeat loop repeat for until while in break
syntax keyword proseException try catch finally throw assert
syntax keyword proseStatement session resume do parallel return
syntax keyword proseOperatorWord and or not as
syntax match proseOperatorWord /\<from\ze\s\+"/
syntax match proseOperator /->\||\|[=!<>]=\|[=<>+]/
syntax match prosePipeline /|\s*\zs\%(map\|filter\|reduce\|pmap\|chunks\)\>/

" Properties: a name and a colon at the start of a line, or inside brackets
syntax match proseProperty /^\s*\zs\%(\%(session\|resume\|parallel\|do\|loop\|else\|try\|catch\|finally\)\>\)\@!\h\%(\w\|-\w\@=\)*\ze\s*:/
syntax match proseProperty /[({,]\s*\zs\h\%(\w\|-\w\@=\)*\ze\s*:/

" Declarations, and the uses that name an agent or a block
syntax match proseDeclare /^\s*\zs\%(agent\|block\|input\|output\|let\|const\|use\|import\)\ze\s\+[A-Za-z_"{]/
syntax match proseAgentName /\%(^\s*agent\s\+\|\<\%(session\|resume\)\s*:\s*\)\@<=\h\%(\w\|-\w\@=\)*/
syntax match proseBlockName /\%(^\s*block\s\+\|\<do\s\+\)\@<=\h\%(\w\|-\w\@=\)*/
syntax match proseInputName /\%(^\s*\%(input\|output\|let\|const\)\s\+\)\@<=\h\%(\w\|-\w\@=\)*/

" At the start of a statement a word before = is a name, whatever the word
syntax match proseTarget /^\s*\zs\h\%(\w\|-\w\@=\)*\ze\s*=\%([^=]\|$\)/

syntax match proseComment /#.*$/ contains=@Spell

highlight default link proseEscape SpecialChar
highlight default link proseBadEscape Error
highlight default link proseInterpolation Identifier
highlight default link proseString String
highlight default link proseTriple String
highlight default link proseDiscretion Special
highlight default link proseDiscretionLong Special
highlight default link proseNumber Number
highlight default link proseConstant Boolean
highlight default link proseConditional Conditional
highlight default link proseRepeat Repeat
highlight default link proseException Exception
highlight default link proseStatement Statement
highlight default link proseOperatorWord Operator
highlight default link proseOperator Operator
highlight default link prosePipeline Function
highlight default link proseProperty Identifier
highlight default link proseDeclare Keyword
highlight default link proseAgentName Type
highlight default link proseBlockName Function
highlight default link proseInputName Identifier
highlight default link proseTarget Identifier
highlight default link proseComment Comment

let b:current_syntax = 'prose'
