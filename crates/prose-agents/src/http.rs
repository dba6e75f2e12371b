//! The HTTP client, set up once for all who need one.

/// A client with the project's TLS: rustls on ring, with the trusted roots of the system.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    // The first one stays; another provider that the process has chosen before does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().user_agent(concat!("prose/", env!("CARGO_PKG_VERSION")))
}
