use std::sync::Arc;

use parking_lot::Mutex;
use proto_firewall::printable;
use proto_release::ReleaseVersion;
use proto_types::Digest;
use serde::{Deserialize, Serialize};

use super::phase::{ProgramRole, UpdatePhase};
use super::record::FailedVersion;

/// The state of self-update, for reports, metrics and commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateStatus {
    /// Version of the program that runs.
    pub version: ReleaseVersion,
    /// SHA-256 of the signed head of its release. `None` if it is not known: no source has named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_digest: Option<Digest>,
    /// Its role.
    pub role: ProgramRole,
    /// Version that the source names. `None` if it names none.
    pub wanted: Option<ReleaseVersion>,
    /// The phase.
    pub phase: UpdatePhase,
    /// The last problem: the rule that a release breaks, or the reason of a failure. Empty if there is none.
    pub last_error: String,
    /// Releases that could not be fetched, or broke a rule, since the start of the agent.
    pub failures: u64,
    /// Releases that did not confirm themselves.
    #[serde(default)]
    pub failed: Vec<FailedVersion>,
}

impl UpdateStatus {
    /// The status as lines, for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let wanted = self.wanted.as_ref().map(ToString::to_string);
        let mut lines = vec![
            format!("version: {}", self.version),
            format!("wanted:  {}", wanted.unwrap_or_else(|| "-".to_owned())),
            format!("phase:   {}", self.phase.name()),
        ];
        if let Some(digest) = &self.head_digest {
            lines.push(format!("digest:  {digest}"));
        }
        if !self.last_error.is_empty() {
            lines.push(format!("error:   {}", printable(&self.last_error)));
        }
        for failed in &self.failed {
            let reason = printable(&failed.reason);
            let (version, attempts) = (&failed.version, failed.attempts);
            let digest = failed.head_digest.as_ref();
            let digest = digest.map(|digest| format!(" ({digest})"));
            let digest = digest.unwrap_or_default();
            lines.push(format!(
                "failed:  {version}{digest}, {attempts} attempts: {reason}"
            ));
        }
        lines
    }
}

/// The newest status. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SharedStatus(Arc<Mutex<UpdateStatus>>);

impl SharedStatus {
    /// A status that is shared.
    #[must_use]
    pub fn new(status: UpdateStatus) -> Self {
        Self(Arc::new(Mutex::new(status)))
    }

    /// The newest status.
    #[must_use]
    pub fn get(&self) -> UpdateStatus {
        self.0.lock().clone()
    }

    /// Replaces the status.
    pub(crate) fn set(&self, status: UpdateStatus) {
        *self.0.lock() = status;
    }
}
