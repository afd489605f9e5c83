//! The typed client of the public API: for the command line, operators and tests.
//!
//! [`ServerContexts`] reads and writes the file of named servers. [`ClientSettings`] are the server
//! and the credentials of one connection, from a context, flags or the environment. [`Client`] holds
//! the connection and hands out the generated service clients. The bearer token is added to each
//! call. [`ObjectWatch`] streams changes and resumes after a disconnect.
//!
//! Invariants:
//! - a call that may change something is retried only if it has an idempotency key or was never
//!   sent; attempts are bounded ([`CALL_ATTEMPTS`]);
//! - the token is in no log and no `Debug` output;
//! - the context file has mode 0600 and is replaced atomically;
//! - a watch that lists again returns the difference, deletions included.

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
