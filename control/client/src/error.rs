//! Errors before a call reaches the server.

use std::io;
use std::path::PathBuf;

/// An error in the configuration of the client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The operation that failed: "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The context file is not valid.
    #[error("{} is not a valid context file", path.display())]
    ContextFile {
        /// The file.
        path: PathBuf,
        /// The error, with its position.
        #[source]
        source: serde_norway::Error,
    },
    /// No context has this name.
    #[error("there is no context {0:?}; see: metalmesh context ls")]
    NoContext(String),
    /// Neither a flag, the environment nor a context names a server.
    #[error(
        "no server is configured; add one: metalmesh context add NAME --api-url URL \
         --token-file FILE --activate"
    )]
    NoServer,
    /// Neither a path of the context file nor HOME is set.
    #[error("HOME is not set; name the context file with --config")]
    NoHome,
    /// The server's address is not a URL.
    #[error("{0:?} is not a URL like http://127.0.0.1:4443 or https://mesh.example")]
    Url(String),
    /// The authority of the server's certificate cannot be used.
    #[error("TLS cannot be set up for {0}")]
    Tls(String, #[source] tonic::transport::Error),
    /// The token is not one line of printable characters.
    #[error("the token in {0} is not a single line of printable characters")]
    Token(String),
}
