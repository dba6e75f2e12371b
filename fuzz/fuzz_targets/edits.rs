#![no_main]

prose_fuzz::target!(Edits);
