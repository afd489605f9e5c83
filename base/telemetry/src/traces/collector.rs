//! The collector that spans go to, as configured.

/// A collector of OpenTelemetry.
#[derive(Clone, Debug)]
pub struct Collector {
    /// OTLP/HTTP, for example `http://127.0.0.1:4318/v1/traces`.
    pub url: String,
    /// Value of the header `Authorization`.
    pub authorization: Option<String>,
    /// Trust for https. `None` means the system's authorities.
    pub tls: Option<rustls::ClientConfig>,
}

/// A reason why a collector cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The URL does not parse.
    #[error("{0:?} is not a URL like http://127.0.0.1:4318/v1/traces")]
    Url(String),
    /// The URL contains a login, which would get into logs.
    #[error("there is a login in the URL: name the collector alone")]
    Login,
    /// The authorization is not a valid header value.
    #[error("the authorization is not a value of a header")]
    Authorization,
    /// The system's authorities cannot be loaded.
    #[error("no authorities of the system")]
    Tls(#[source] rustls::Error),
}
