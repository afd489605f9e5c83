//! The typed client of the public API: for the command line, operators and tests.
//!
//! [`ServerContexts`] reads and writes the file of named servers. [`ClientSettings`] are the server
//! and the credentials of one connection, from a context, flags or the environment. [`Client`] holds
//! the connection and hands out the generated service clients. The bearer token is added to each
//! call and never logged. Calls that cannot have had an effect are retried while the server is away.
//! [`ObjectWatch`] streams changes and resumes after a disconnect.

#![warn(missing_docs)]

mod context;
mod error;
mod raw;
mod session;
mod settings;
mod watch;

pub use context::{ENV_CONFIG, SecretText, ServerContext, ServerContexts};
pub use error::ClientError;
pub use session::{ApiSession, CALL_ATTEMPTS, Client};
pub use settings::{ClientSettings, ENV_TOKEN_FILE, ENV_URL, KeptBack};
pub use watch::{ObjectWatch, WatchScope};
