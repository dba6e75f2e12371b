//! The one table of keywords, properties and their values.
