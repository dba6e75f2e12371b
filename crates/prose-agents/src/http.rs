//! The HTTP client, set up once for all who need one.

/// Makes TLS work: rustls on ring.
pub(crate) fn provide_tls() {
    // The first one stays; another provider that the process has chosen before does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A client with the project's TLS, with the trusted roots of the system.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    provide_tls();
    reqwest::Client::builder().user_agent(concat!("prose/", env!("CARGO_PKG_VERSION")))
}
