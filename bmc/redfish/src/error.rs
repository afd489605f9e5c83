//! Why a BMC could not be asked, or what it answered instead.

use std::io;
use std::time::Duration;

/// Why a BMC could not be asked, or what it answered instead.
#[derive(Debug, thiserror::Error)]
pub enum RedfishError {
    /// No TCP connection.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// No TLS session: most often the certificate is not the one that was configured.
    #[error("no TLS session")]
    Tls(#[source] io::Error),
    /// The configuration of TLS is wrong.
    #[error("TLS cannot be set up")]
    TlsConfig(#[source] rustls::Error),
    /// Nothing came in time.
    #[error("no answer to {what} within {within:?}")]
    Silent { what: String, within: Duration },
    /// The connection broke.
    #[error("the connection broke at {what}")]
    Broken {
        what: String,
        #[source]
        source: hyper::Error,
    },
    /// The user or the password is wrong, or the user may not.
    #[error("the BMC refuses {what}: check user and password (status {status})")]
    Denied { what: String, status: u16 },
    /// The BMC answered with an error.
    #[error("{what} failed: {message} (status {status})")]
    Status {
        what: String,
        status: u16,
        message: String,
    },
    /// A body that is longer than any we want.
    #[error("the answer to {what} is cut or longer than {max} bytes")]
    Body { what: String, max: usize },
    /// Not JSON, or without what the schema asks for.
    #[error("the answer to {what} is malformed: {reason}")]
    Malformed { what: String, reason: String },
    /// A link out of the service.
    #[error("the BMC links to {0:?}, which is not one of its resources")]
    Link(String),
    /// The BMC cannot do that.
    #[error("the BMC does not support {what}; it allows {allowed}")]
    Unsupported { what: String, allowed: String },
}
