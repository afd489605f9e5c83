//! The errors of Redfish requests.

use std::io;
use std::time::Duration;

/// The reason why a request to a BMC failed.
#[derive(Debug, thiserror::Error)]
pub enum RedfishError {
    /// The TCP connection failed.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// The TLS handshake failed: most often the certificate is not the configured one.
    #[error("no TLS session")]
    Tls(#[source] io::Error),
    /// The TLS configuration is invalid.
    #[error("TLS cannot be set up")]
    TlsConfig(#[source] rustls::Error),
    /// No answer came in time.
    #[error("no answer to {what} within {within:?}")]
    Silent { what: String, within: Duration },
    /// The connection broke.
    #[error("the connection broke at {what}")]
    Broken {
        what: String,
        #[source]
        source: hyper::Error,
    },
    /// User or password is wrong, or the user lacks the privilege.
    #[error("the BMC refuses {what}: check user and password (status {status})")]
    Denied { what: String, status: u16 },
    /// The BMC answered with an error.
    #[error("{what} failed: {message} (status {status})")]
    Status {
        what: String,
        status: u16,
        message: String,
    },
    /// The body exceeds the bound or ends early.
    #[error("the answer to {what} is incomplete or longer than {max} bytes")]
    Body { what: String, max: usize },
    /// The answer is not JSON or lacks a required property.
    #[error("the answer to {what} is malformed: {reason}")]
    Malformed { what: String, reason: String },
    /// The BMC sent a link that leads out of its service or is too long. Only its beginning is
    /// kept.
    #[error("the BMC links to {0:?}, which is not one of its resources")]
    Link(String),
    /// The BMC does not support the operation.
    #[error("the BMC does not support {what}; it allows {allowed}")]
    Unsupported { what: String, allowed: String },
}
