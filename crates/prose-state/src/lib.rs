//! Run directory, journal, value store, bindings, memory, state.md.
