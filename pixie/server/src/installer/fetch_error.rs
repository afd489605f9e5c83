//! The reasons why a file was not fetched.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::StatusCode;

/// The reason why the HTTP client was not created.
#[derive(Debug, thiserror::Error)]
pub enum FetchSetupError {
    #[error("cannot read the certificate authorities in {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no certificate authorities in {path}")]
    Authorities { path: PathBuf },
    #[error("no HTTP client")]
    Client(#[source] reqwest::Error),
}

/// The reason why a file was not fetched. No text contains its URL.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("not a URL")]
    NotUrl,
    #[error("cannot fetch by {0}, only by http and https")]
    Scheme(String),
    #[error("no answer")]
    Http(#[source] reqwest::Error),
    #[error("the server answers {0}")]
    Status(StatusCode),
    #[error("the file is empty")]
    Empty,
    #[error("the file is longer than {0} bytes")]
    TooLong(u64),
    #[error("the server sends no length, so that a truncated file would not be detected")]
    Unbounded,
    #[error("the download broke off")]
    Broken(#[source] reqwest::Error),
    #[error("the file has {got} bytes, its server said {want}")]
    Cut { got: u64, want: u64 },
    #[error("the download took longer than {} s", .0.as_secs())]
    Slow(Duration),
    #[error("cannot write it")]
    Write(#[source] io::Error),
}

impl From<reqwest::Error> for FetchError {
    /// Removes the URL from the error, because it may contain a password.
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_body() || error.is_decode() {
            Self::Broken(error)
        } else {
            Self::Http(error)
        }
    }
}
