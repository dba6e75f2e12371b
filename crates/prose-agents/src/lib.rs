//! Session backends and the judge behind two traits.
