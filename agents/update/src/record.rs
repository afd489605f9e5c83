use proto_firewall::printable;
use proto_release::ReleaseVersion;
use proto_types::Digest;
use serde::{Deserialize, Serialize};

use super::phase::ProgramRole;
use super::program::{InstalledProgram, StoredProgram, TrialProgram};
use super::release_id::ReleaseId;

/// Attempts that a release has. After them it is refused until an operator, or a wanted release that
/// differs, says otherwise. A program that ends before it confirms itself has no second one.
pub const ATTEMPTS_MAX: u32 = 3;
/// Failed releases that are remembered. The oldest goes.
const FAILED_MAX: usize = 8;
/// Version of the record.
const FORMAT: u32 = 1;

/// A release that did not confirm itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedVersion {
    /// Its version.
    pub version: ReleaseVersion,
    /// SHA-256 of its signed head. `None` if it is not known, as if an earlier program wrote the record:
    /// then it stands for every release of its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_digest: Option<Digest>,
    /// Times that it was tried, at most [`ATTEMPTS_MAX`].
    pub attempts: u32,
    /// The reason of the last failure.
    pub reason: String,
}

impl FailedVersion {
    fn release(&self) -> ReleaseId {
        ReleaseId {
            version: self.version.clone(),
            head_digest: self.head_digest.clone(),
        }
    }
}

/// The program that is used, the one that is tried, and the ones that failed.
///
/// The installed program reads it at every start, also after years of newer programs that wrote it: fields
/// may be added, and never changed. A reader that does not know a field drops it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateRecord {
    format: u32,
    /// The installed program at the first update. If it is another one now, an operator has replaced
    /// it, and it is used.
    pub installed: InstalledProgram,
    /// The release that is used. `None` means the installed program.
    #[serde(default)]
    pub confirmed: Option<StoredProgram>,
    /// The release that is tried.
    #[serde(default)]
    pub trial: Option<TrialProgram>,
    /// Releases that failed, the oldest first.
    #[serde(default)]
    pub failed: Vec<FailedVersion>,
    /// SHA-256 of the signed head of the release whose program the installed one is. `None` if that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_head: Option<Digest>,
}

impl UpdateRecord {
    /// The record before any update.
    #[must_use]
    pub fn new(installed: InstalledProgram) -> Self {
        Self {
            format: FORMAT,
            installed,
            confirmed: None,
            trial: None,
            failed: Vec::new(),
            installed_head: None,
        }
    }

    /// The record of a file. `None` if it is damaged, or of a later format: then the installed
    /// program is used.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(bytes).ok()?;
        let is_usable = record.format == FORMAT
            && record.programs().all(StoredProgram::is_safe)
            && record.failed.len() <= FAILED_MAX;
        is_usable.then_some(record)
    }

    /// The programs that it names.
    pub fn programs(&self) -> impl Iterator<Item = &StoredProgram> {
        let trial = self.trial.as_ref().map(|trial| &trial.program);
        self.confirmed.iter().chain(trial)
    }

    /// Tries a program at the next start. `head` is the signed head of its release.
    pub fn begin_trial(&mut self, program: StoredProgram, head: &[u8]) {
        self.trial = Some(TrialProgram::new(program, head));
    }

    /// Uses the program that was tried from now on. Does nothing without one.
    pub fn confirm_trial(&mut self) {
        if let Some(trial) = self.trial.take() {
            let release = trial.release();
            self.forget_failures(&release);
            self.confirmed = Some(StoredProgram {
                head_digest: release.head_digest,
                head: trial.head,
                ..trial.program
            });
        }
    }

    /// Uses the program before the trial again. `is_final` refuses the release from now on.
    pub fn fail_trial(&mut self, reason: &str, is_final: bool) {
        let Some(trial) = self.trial.take() else {
            return;
        };
        let release = trial.release();
        let attempts = match is_final {
            true => ATTEMPTS_MAX,
            false => ATTEMPTS_MAX.min(self.attempts(&release) + 1),
        };
        self.forget_failures(&release);
        if self.failed.len() >= FAILED_MAX {
            self.failed.remove(0);
        }
        self.failed.push(FailedVersion {
            version: release.version,
            head_digest: release.head_digest,
            attempts,
            reason: printable(reason),
        });
    }

    fn forget_failures(&mut self, release: &ReleaseId) {
        self.failed
            .retain(|failed| !failed.release().may_be(release));
    }

    fn failures(&self, release: &ReleaseId) -> impl DoubleEndedIterator<Item = &FailedVersion> {
        let failed = self.failed.iter();
        failed.filter(move |failed| failed.release().may_be(release))
    }

    /// Times that a release was tried without success.
    #[must_use]
    pub fn attempts(&self, release: &ReleaseId) -> u32 {
        let attempts = self.failures(release).map(|failed| failed.attempts);
        attempts.max().unwrap_or(0)
    }

    /// The reason why a release is not tried again. `None` if it may be.
    #[must_use]
    pub fn refusal(&self, release: &ReleaseId) -> Option<&str> {
        let mut failed = self.failures(release);
        let refused = failed.find(|failed| failed.attempts >= ATTEMPTS_MAX);
        refused.map(|failed| failed.reason.as_str())
    }

    /// The reason of a release's last failure. `None` if it has not failed.
    pub(super) fn last_failure(&self, release: &ReleaseId) -> Option<&str> {
        let failed = self.failures(release).next_back();
        failed.map(|failed| failed.reason.as_str())
    }

    /// Takes note of the signed head of the release whose program runs in a role, and of its digest as the
    /// source names it.
    pub(super) fn recognize(&mut self, role: ProgramRole, head: &[u8], digest: Option<Digest>) {
        match (role, &mut self.confirmed) {
            (ProgramRole::Installed, _) => self.installed_head = digest,
            (ProgramRole::Confirmed, Some(confirmed)) => {
                confirmed.head_digest = digest;
                // Another key may have signed it: the one of before can be removed.
                confirmed.set_head(head);
            }
            // One on trial has its head already.
            _ => {}
        }
    }
}
