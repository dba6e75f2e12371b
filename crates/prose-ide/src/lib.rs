//! Every editor feature as plain data in byte offsets.
