//! The start of the agent: the installed program becomes the one that the record names.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use tracing::{info, warn};

use super::built_version;
use super::files::UpdateFiles;
use super::program::{InstalledProgram, StoredProgram};
use super::record::UpdateRecord;
use super::start::{after_failed_start, drop_distrusted, plan_start};
use super::start_trust::StartTrust;
use crate::sealed_dir::SealedDir;

/// This program's own file, also after it was replaced.
const OWN_FILE: &str = "/proc/self/exe";
/// Programs that are tried in one start: the new one, and the one before it. Then the installed one
/// goes on.
const PROGRAMS_MAX: usize = 2;

/// Becomes the program that the record of updates names. Returns if that is this one, or if anything
/// is in the way: a host always has an agent.
///
/// `trust` reads the configuration of the agent.
pub fn hand_over(state_dir: &Path, trust: &dyn StartTrust) {
    // To open it would make it.
    if !state_dir.exists() {
        return;
    }
    if let Err(error) = try_hand_over(state_dir, trust) {
        let error = format!("{error:#}");
        warn!(
            error,
            "the record of updates cannot be followed; the installed program goes on"
        );
    }
}

fn try_hand_over(state_dir: &Path, trust: &dyn StartTrust) -> Result<()> {
    let state = SealedDir::open(state_dir)?;
    let files = UpdateFiles::new(state.clone());
    let own = std::env::current_exe().context("this program has no file")?;
    if files.file_of(&own).is_some() {
        return Ok(());
    }
    // An agent that runs has counted its start; this one ends when it does not get the lock.
    let Ok(Some(_lock)) = state.lock() else {
        return Ok(());
    };
    let Some(mut record) = files.record() else {
        return Ok(());
    };
    let notes = drop_distrusted(&mut record, trust);
    for reason in &notes {
        warn!(reason, "self-update");
    }
    if !notes.is_empty() {
        files.keep(&record)?;
    }
    let meta = fs::metadata(OWN_FILE).context("this program has no file")?;
    let installed = InstalledProgram::of(built_version()?, &meta);
    for _ in 0..PROGRAMS_MAX {
        let Some((plan, program)) = next_program(&files, &record, &installed) else {
            return Ok(());
        };
        let error = become_program(&files, &program);
        let reason = format!("version {}: it cannot be started: {error}", program.version);
        warn!(reason, "self-update");
        record = after_failed_start(plan, &program, &reason);
        files.keep(&record)?;
    }
    Ok(())
}

/// The record of a start, which is kept, and the program that it uses. `None` means the installed one.
fn next_program(
    files: &UpdateFiles,
    record: &UpdateRecord,
    installed: &InstalledProgram,
) -> Option<(UpdateRecord, StoredProgram)> {
    let whole = files.whole(record.programs());
    let plan = plan_start(record.clone(), installed, &whole);
    for note in &plan.notes {
        warn!(note, "self-update");
    }
    let kept = if plan.record == *record {
        Ok(())
    } else {
        files.keep(&plan.record)
    };
    let program = match kept {
        Ok(()) => plan.program,
        Err(error) => {
            let error = format!("{error:#}");
            warn!(
                error,
                "a start cannot be counted; a new program is not tried"
            );
            let confirmed = plan.record.confirmed.clone();
            confirmed.filter(|program| whole.contains(&program.file))
        }
    };
    program.map(|program| (plan.record, program))
}

/// Returns only if the program cannot be started. The lock ends with this program.
fn become_program(files: &UpdateFiles, program: &StoredProgram) -> io::Error {
    let version = &program.version;
    info!(%version, "starting a release of this program");
    let mut arguments = std::env::args_os();
    let mut command = Command::new(files.path_of(program));
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).exec()
}
