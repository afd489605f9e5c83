//! What can go wrong before a call reaches the server.

use std::io;
use std::path::PathBuf;

/// A mistake in the set-up of the client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// "read", "write", "create".
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The context file is not what it should be.
    #[error("{} is not a valid context file", path.display())]
    ContextFile {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_norway::Error,
    },
    /// No context of that name.
    #[error("there is no context {0:?}; see: metalmesh context ls")]
    NoContext(String),
    /// Nothing says which server to talk to.
    #[error(
        "no server is configured; add one: metalmesh context add NAME --api-url URL \
         --token-file FILE --activate"
    )]
    NoServer,
    /// Neither HOME nor a path for the context file.
    #[error("HOME is not set; name the context file with --config")]
    NoHome,
    /// The server's address is no URL.
    #[error("{0:?} is not a URL like http://127.0.0.1:4443 or https://mesh.example")]
    Url(String),
    /// The certificate file of the server cannot be used.
    #[error("TLS cannot be set up for {0}")]
    Tls(String, #[source] tonic::transport::Error),
    /// The token is not printable text.
    #[error("the token in {0} is not a single line of printable characters")]
    Token(String),
}
