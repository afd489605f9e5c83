//! The address of a BMC, the user to log in with, and timeouts.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderValue, InvalidHeaderValue};

use crate::trust::Trust;

/// The address of a BMC and the trust in its certificate.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub trust: Trust,
}

/// Timeouts of a session.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Timeout of the TCP connection, and again of the TLS handshake.
    pub connect: Duration,
    /// Timeout of one request with its answer. BMCs are slow.
    pub request: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(20),
        }
    }
}

/// User name and password of a BMC. `Debug` shows the name only.
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// Takes a user name and password.
    #[must_use]
    pub fn new(user: &str, password: &str) -> Self {
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
        }
    }

    /// The value of the `Authorization` header, marked so that it is not logged.
    pub(crate) fn header(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        let text = STANDARD.encode(format!("{}:{}", self.user, self.password));
        let mut value = HeaderValue::from_str(&format!("Basic {text}"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("password", &"<redacted>")
            .finish()
    }
}
