//! Lexer, layout, event parser, lossless rowan tree and typed AST.
