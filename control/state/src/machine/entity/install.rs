//! Progress of an installation.

use std::fmt;

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// Progress of an installation.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Install {
    /// Number of the current attempt, from 1.
    pub attempt: u32,
    /// `true` if hammer began the current attempt.
    pub begun: bool,
    /// Time of success; `None` means not yet.
    pub installed_at: Option<Timestamp>,
    /// Error of the last attempt; `None` means that none failed.
    pub error: Option<String>,
    /// The step that failed; empty if unknown.
    pub step: String,
    /// The last lines of hammer's log.
    pub log_tail: String,
    /// Disk that the system is on.
    pub primary_disk: String,
    /// Password of the console, shown to admins on request only.
    pub console_password: String,
}

impl fmt::Debug for Install {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Install")
            .field("attempt", &self.attempt)
            .field("begun", &self.begun)
            .field("installed_at", &self.installed_at)
            .field("error", &self.error)
            .field("step", &self.step)
            .field("primary_disk", &self.primary_disk)
            .field("console_password", &"<redacted>")
            .finish_non_exhaustive()
    }
}
