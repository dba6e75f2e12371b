//! The tokio engine: performs effects, limits, cancels, resumes, publishes events.
