//! Errors of a VPN's control server and of its configuration.

use std::io;
use std::path::PathBuf;

/// The reason why a VPN's control server did not carry out a request.
#[derive(Debug, thiserror::Error)]
pub enum VpnError {
    /// It did not answer, or not in time.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It refused the API key.
    #[error("it refused the API key")]
    KeyRefused,
    /// It refused the request, or its answer cannot be read.
    #[error("it answered {0}")]
    Refused(String),
}

impl VpnError {
    /// An answer with a field that cannot be read.
    pub(crate) fn unreadable(field: &str, text: &str) -> Self {
        Self::Refused(format!(
            "a value of {field} that cannot be read: {:?}",
            text.chars().take(FIELD_CHARS_MAX).collect::<String>()
        ))
    }
}

/// Maximum characters of an unreadable field that an error quotes. The rest is cut.
const FIELD_CHARS_MAX: usize = 64;

/// A fault of the section `[vpn]`. The message names the field.
#[derive(Debug, thiserror::Error)]
pub enum VpnSettingsError {
    /// Other fields are set, but not the URL.
    #[error(
        "vpn.url: is missing; name the headscale, for example url = \"https://headscale.example\""
    )]
    UrlMissing,
    /// The URL cannot be parsed.
    #[error("vpn.url: is not a URL like https://headscale.example")]
    UrlUnreadable(#[from] url::ParseError),
    /// The URL has another scheme, or no host.
    #[error("vpn.url: is not a URL like https://headscale.example, but {0:?}")]
    UrlUnusable(String),
    /// The URL contains credentials. They are not repeated in the message.
    #[error("vpn.url: must not hold a user or a password; the key goes into vpn.api_key_file")]
    UrlWithCredentials,
    /// The file with the API key is not named.
    #[error(
        "vpn.api_key_file: is missing; name a file with a key that `headscale apikeys create` makes"
    )]
    KeyFileMissing,
    /// The file with the API key cannot be read.
    #[error("vpn.api_key_file: cannot read {}", path.display())]
    KeyFileUnreadable {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file with the API key is empty.
    #[error("vpn.api_key_file: {} is empty; `headscale apikeys create` makes a key", .0.display())]
    KeyFileEmpty(PathBuf),
    /// The HTTP client cannot be set up.
    #[error("no HTTP client for the VPN")]
    Client(#[source] reqwest::Error),
}
