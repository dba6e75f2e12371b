#![no_main]

prose_fuzz::target!(Formatter);
