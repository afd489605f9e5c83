//! Addresses of redis.

use std::fmt;

/// The address of redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(std::path::PathBuf),
    /// Host and port ("127.0.0.1:6379").
    Tcp(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}
