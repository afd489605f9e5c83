//! The typed client of the public API: for the command line, operators and tests.
//!
//! [`Contexts`] reads and writes the file of named servers, [`Settings`] is one server to talk
//! to (from a context, flags or the environment), [`Client`] holds the connection and hands out
//! the generated service clients. The bearer token is added to each call and never shown;
//! calls that cannot have had an effect are repeated while the server is away. [`Watch`] tells what
//! changes and goes on by itself after breaks.

#![warn(missing_docs)]

mod context;
mod error;
mod raw;
mod session;
mod settings;
mod watch;

pub use context::{Context, Contexts, Secret};
pub use error::ClientError;
pub use session::{CALL_ATTEMPTS, Client, Session};
pub use settings::{ENV_CONFIG, ENV_TOKEN_FILE, ENV_URL, KeptBack, Settings};
pub use watch::{Watch, WatchScope};
