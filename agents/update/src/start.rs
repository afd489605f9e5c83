//! Decides which program a start uses.

use std::collections::BTreeSet;

use super::program::{InstalledProgram, StoredProgram};
use super::record::UpdateRecord;
use super::start_trust::StartTrust;

/// Starts of a new program within which it confirms itself. After them the program before it is used
/// again.
pub const STARTS_MAX: u32 = 3;

/// The program of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartPlan {
    /// The record to be kept before the program is started.
    pub record: UpdateRecord,
    /// The program. `None` means the installed one.
    pub program: Option<StoredProgram>,
    /// Decisions that an operator should know, in their order.
    pub notes: Vec<String>,
}

/// Takes those releases out of a record that the files of the host do not trust any more. Returns the
/// decisions, in their order.
pub(super) fn drop_distrusted(record: &mut UpdateRecord, trust: &dyn StartTrust) -> Vec<String> {
    let mut notes = Vec::new();
    let trial = record.trial.as_ref();
    if let Some(problem) = trial.and_then(|trial| trust.trial_problem(trial)) {
        record.fail_trial(&problem, false);
        notes.push(format!("{problem}; the program before it is used again"));
    }
    // One that an earlier program has confirmed has no head.
    let confirmed = record.confirmed.as_ref();
    let head = confirmed.and_then(StoredProgram::signed_head);
    let problem = head.and_then(|head| trust.confirmed_problem(&head));
    let dropped = problem.and_then(|problem| Some((problem, record.confirmed.take()?)));
    if let Some((problem, confirmed)) = dropped {
        let version = confirmed.version;
        notes.push(format!(
            "version {version}: {problem}; the installed program is used"
        ));
    }
    notes
}

/// Chooses the program of a start: the new one while it is on trial, else the confirmed one, else the
/// installed one. `whole` has the files whose content is that of their manifests.
#[must_use]
pub fn plan_start(
    mut record: UpdateRecord,
    installed: &InstalledProgram,
    whole: &BTreeSet<String>,
) -> StartPlan {
    let mut notes = Vec::new();
    if record.installed != *installed {
        notes.push(
            "the installed program was replaced, and is used instead of a release".to_owned(),
        );
        record = UpdateRecord::new(installed.clone());
    }
    if let Some(trial) = &mut record.trial {
        let version = &trial.program.version;
        let problem = if !whole.contains(&trial.program.file) {
            Some(format!("the file of version {version} is damaged"))
        } else if trial.starts >= STARTS_MAX {
            let text = "it did not confirm itself in";
            Some(format!("version {version}: {text} {STARTS_MAX} starts"))
        } else {
            None
        };
        let Some(problem) = problem else {
            trial.starts += 1;
            let program = trial.program.clone();
            return StartPlan {
                record,
                program: Some(program),
                notes,
            };
        };
        record.fail_trial(&problem, true);
        notes.push(problem + "; the program before it is used again");
    }
    let damaged = record
        .confirmed
        .take_if(|confirmed| !whole.contains(&confirmed.file));
    if let Some(damaged) = damaged {
        let version = damaged.version;
        notes.push(format!(
            "the file of version {version} is damaged; the installed program is used"
        ));
    }
    let program = record.confirmed.clone();
    StartPlan {
        record,
        program,
        notes,
    }
}

/// The record after a program that cannot be started at all. One that is on trial is refused.
#[must_use]
pub fn after_failed_start(
    mut record: UpdateRecord,
    program: &StoredProgram,
    reason: &str,
) -> UpdateRecord {
    let is_trial = record
        .trial
        .as_ref()
        .is_some_and(|trial| trial.program.file == program.file);
    if is_trial {
        record.fail_trial(reason, true);
    } else {
        record.confirmed = None;
    }
    record
}
