//! Salsa inputs and queries: item tree, scopes, checks, lowering to a bundle.
