//! The machine: a synchronous, deterministic step function from outcomes to effects.
