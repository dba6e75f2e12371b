//! Fixtures for tests: files, cursors and annotations in one string.
