//! Plain data shared by every layer: bundle, values, effects, outcomes, events, journal records, tables of codes and vocabulary.
