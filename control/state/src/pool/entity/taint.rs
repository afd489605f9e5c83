//! Taints of hosts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most taints of a host; a request with more is refused.
pub const TAINTS_MAX: usize = 16;

/// A taint: claims that do not tolerate it do not get the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostTaint {
    /// Its key.
    pub key: String,
    /// Its value. Empty means none.
    #[serde(default)]
    pub value: String,
}

impl fmt::Display for HostTaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value.is_empty() {
            true => f.pad(&self.key),
            false => write!(f, "{}={}", self.key, self.value),
        }
    }
}
