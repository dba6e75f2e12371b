#![no_main]

prose_fuzz::target!(Journal);
