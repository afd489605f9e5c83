use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proto_firewall::printable;
use proto_release::ReleaseVersion;
use serde::{Deserialize, Serialize};

use super::program::{InstalledProgram, StoredProgram, TrialProgram};

/// Attempts that a version has. After them it is refused until an operator, or a wanted version that
/// differs, says otherwise. A program that ends before it confirms itself has no second one.
pub const ATTEMPTS_MAX: u32 = 3;
/// Failed versions that are remembered. The oldest goes.
const FAILED_MAX: usize = 8;
/// Version of the record.
const FORMAT: u32 = 1;

/// A version that did not confirm itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedVersion {
    /// The version.
    pub version: ReleaseVersion,
    /// Times that it was tried, at most [`ATTEMPTS_MAX`].
    pub attempts: u32,
    /// The reason of the last failure.
    pub reason: String,
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
    /// Versions that failed, the oldest first.
    #[serde(default)]
    pub failed: Vec<FailedVersion>,
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
        self.trial = Some(TrialProgram {
            program,
            starts: 0,
            head: STANDARD.encode(head),
        });
    }

    /// The signed head of the release that is tried. `None` if it is not known.
    pub(crate) fn trial_head(&self) -> Option<Vec<u8>> {
        let trial = self.trial.as_ref().filter(|trial| !trial.head.is_empty())?;
        // One that cannot be read is no head of a release, either.
        Some(STANDARD.decode(&trial.head).unwrap_or_default())
    }

    /// Uses the program that was tried from now on. Does nothing without one.
    pub fn confirm_trial(&mut self) {
        if let Some(trial) = self.trial.take() {
            self.failed
                .retain(|failed| failed.version != trial.program.version);
            self.confirmed = Some(trial.program);
        }
    }

    /// Uses the program before the trial again. `is_final` refuses the version from now on.
    pub fn fail_trial(&mut self, reason: &str, is_final: bool) {
        let Some(trial) = self.trial.take() else {
            return;
        };
        let version = trial.program.version;
        let attempts = self.attempts(&version) + 1;
        self.failed.retain(|failed| failed.version != version);
        if self.failed.len() >= FAILED_MAX {
            self.failed.remove(0);
        }
        self.failed.push(FailedVersion {
            version,
            attempts: if is_final { ATTEMPTS_MAX } else { attempts },
            reason: printable(reason),
        });
    }

    /// Times that a version was tried without success.
    #[must_use]
    pub fn attempts(&self, version: &ReleaseVersion) -> u32 {
        let failed = self.failed.iter().find(|failed| failed.version == *version);
        failed.map_or(0, |failed| failed.attempts)
    }

    /// The reason why a version is not tried again. `None` if it may be.
    #[must_use]
    pub fn refusal(&self, version: &ReleaseVersion) -> Option<&str> {
        let mut failed = self.failed.iter();
        let failed = failed.find(|failed| failed.version == *version)?;
        (failed.attempts >= ATTEMPTS_MAX).then_some(failed.reason.as_str())
    }
}
