#![no_main]

prose_fuzz::target!(Rewrites);
