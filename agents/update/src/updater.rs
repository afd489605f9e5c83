//! Self-update while the agent runs: carries out what [`UpdateMachine`] decides.

mod staged;

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::facts::{UpdateFacts, UpdateStep};
use super::files::UpdateFiles;
use super::machine::UpdateMachine;
use super::phase::{ProgramRole, UpdatePhase};
use super::probe::ProbeJob;
use super::program::InstalledProgram;
use super::record::UpdateRecord;
use super::release_id::ReleaseId;
use super::stage::{StageJob, StagedRelease, stage};
use super::status::{SharedStatus, UpdateStatus};
use super::wanted::WantedRelease;
use super::{RUNNING, built_version};
use crate::host::UpdateHost;
use crate::sealed_dir::SealedDir;
use crate::settings::UpdateSettings;
use crate::updating_program::UpdatingProgram;

/// Pause before a record that could not be written is written again.
const WRITE_RETRY: Duration = Duration::from_secs(5);

/// A release that was fetched, or was not.
type StageEnd = (WantedRelease, Result<StagedRelease, String>);

/// Self-update of the agent that runs.
#[derive(Debug)]
pub struct SelfUpdate {
    program: UpdatingProgram,
    files: UpdateFiles,
    machine: UpdateMachine,
    record: UpdateRecord,
    tasks: JoinSet<StageEnd>,
    /// The settings that a release is fetched with.
    fetched_by: Option<UpdateSettings>,
    started: Instant,
    /// Part of the spread that this agent waits, 0 to 1.
    share: f64,
    /// The problem of the last fetch, while its release is wanted.
    fetch_error: Option<(WantedRelease, String)>,
    failures: u64,
    /// `true` once nothing is left of the last trial but its result.
    is_settled: bool,
    /// When a record is written again that could not be written.
    write_again: Option<Instant>,
    status: SharedStatus,
}

impl SelfUpdate {
    /// Finds out which program this is. Call it with the lock of the state directory.
    ///
    /// # Errors
    /// This program has no file, or no version.
    pub fn open(program: UpdatingProgram, state: &SealedDir) -> Result<Self> {
        let files = UpdateFiles::new(state.clone());
        let (machine, record) = identify(&files)?;
        let ReleaseId {
            version,
            head_digest,
        } = machine.release().clone();
        // A process has one program: later calls say the same.
        RUNNING.get_or_init(|| version.to_string());
        if machine.role() != ProgramRole::Stray {
            files.tidy(Some(&record));
        }
        let status = UpdateStatus {
            version,
            head_digest,
            role: machine.role(),
            wanted: None,
            phase: UpdatePhase::Off,
            last_error: String::new(),
            failures: 0,
            failed: record.failed.clone(),
        };
        // That of the last process is over.
        keep_status(&files, &status);
        Ok(Self {
            program,
            files,
            machine,
            record,
            tasks: JoinSet::new(),
            fetched_by: None,
            started: Instant::now(),
            share: rand::random_range(0.0..1.0),
            fetch_error: None,
            failures: 0,
            is_settled: false,
            write_again: None,
            status: SharedStatus::new(status),
        })
    }

    /// The status, for whoever shows it.
    #[must_use]
    pub fn status(&self) -> SharedStatus {
        self.status.clone()
    }

    /// Does what is due. Call it often. Returns `true` if the agent has to end, so that another program
    /// takes its place.
    pub fn tick(&mut self, host: &impl UpdateHost) -> bool {
        let is_healthy = host.is_healthy();
        let settings = host.settings();
        if self.files.take_retry() {
            info!("failed releases are forgotten");
            self.record.failed.clear();
            self.fetch_error = None;
            self.machine.retry_now();
            self.keep_record();
        }
        let (wanted, problem) = match host.wanted() {
            Ok(wanted) => (wanted, None),
            Err(problem) => (None, Some(problem)),
        };
        self.end_stale_fetch(settings.as_ref());
        if self.take_staged(host, wanted.as_ref()) {
            return true;
        }
        self.settle(host, is_healthy);
        let obstacle = host.obstacle().filter(|_| wanted.is_some());
        let problem = problem.or_else(|| Some(obstacle?.to_owned()));
        let config = settings.as_ref();
        let spread = config.map_or(0, |config| config.spread_seconds);
        let facts = UpdateFacts {
            now: self.started.elapsed(),
            is_enabled: config.is_some_and(UpdateSettings::is_possible),
            wanted: wanted.as_ref(),
            is_healthy,
            unhealthy: self.program.unhealthy,
            delay: Duration::from_secs(spread.into()).mul_f64(self.share),
        };
        let step = self.machine.step(&facts, &self.record);
        if self.machine.fetching().is_none() {
            // Another one is wanted, or none any more.
            self.end_fetch();
        }
        match step {
            UpdateStep::Wait(phase) => self.publish(phase, wanted.as_ref(), problem),
            UpdateStep::Fetch(release) => {
                self.fetch(release, settings, host.probe_job());
                self.publish(UpdatePhase::Fetching, wanted.as_ref(), problem);
            }
            UpdateStep::Confirm => self.confirm(),
            UpdateStep::GiveUp(reason) => {
                error!(reason, "the new program is not used any more");
                self.record.fail_trial(&reason, false);
                // Without it the starts are counted, and end the trial as well.
                self.keep_record();
                return true;
            }
        }
        false
    }

    fn fetch(
        &mut self,
        wanted: WantedRelease,
        settings: Option<UpdateSettings>,
        probe: Option<ProbeJob>,
    ) {
        let (Some(settings), Some(probe)) = (settings, probe) else {
            return;
        };
        let job = StageJob {
            wanted: wanted.clone(),
            running: self.machine.running().clone(),
            program: self.program,
            settings: settings.clone(),
            probe,
            files: self.files.clone(),
        };
        self.end_fetch();
        self.fetched_by = Some(settings);
        self.tasks.spawn(async move { (wanted, stage(job).await) });
    }

    /// Ends the fetch that runs, if any. Its connection is closed, and its program is not run.
    fn end_fetch(&mut self) {
        // Those that are dropped are aborted.
        self.tasks = JoinSet::new();
        self.fetched_by = None;
    }

    /// Ends a fetch whose keys or other settings are not in force any more. It begins again with those
    /// that are.
    fn end_stale_fetch(&mut self, settings: Option<&UpdateSettings>) {
        if self.fetched_by.is_some() && self.fetched_by.as_ref() != settings {
            self.end_fetch();
            self.machine.fetch_ended();
        }
    }

    fn confirm(&mut self) {
        if self.write_again.is_some_and(|at| Instant::now() < at) {
            return;
        }
        let mut record = self.record.clone();
        record.confirm_trial();
        if let Err(problem) = self.files.keep(&record) {
            let problem = format!("{problem:#}");
            warn!(
                error = problem,
                "the new program works, which cannot be written"
            );
            self.write_again = Some(Instant::now() + WRITE_RETRY);
            return;
        }
        let release = self.machine.release().clone();
        info!(version = %release.version, "the new program has confirmed itself");
        self.record = record;
        self.files.tidy(Some(&self.record));
        self.machine = UpdateMachine::new(ProgramRole::Confirmed, release);
    }

    /// Removes what was kept before the update once this program has kept its own.
    fn settle(&mut self, host: &impl UpdateHost, is_healthy: bool) {
        if self.is_settled || !is_healthy || self.machine.role() == ProgramRole::Trial {
            return;
        }
        self.is_settled = true;
        if let Err(error) = host.drop_before_update() {
            warn!(error, "files from before an update are not removed");
        }
    }

    fn keep_record(&self) {
        if let Err(problem) = self.files.keep(&self.record) {
            let problem = format!("{problem:#}");
            warn!(error = problem, "the record of updates cannot be written");
        }
    }

    /// Shows the phase if it changed.
    fn publish(
        &mut self,
        phase: UpdatePhase,
        wanted: Option<&WantedRelease>,
        problem: Option<String>,
    ) {
        let of_fetch = || {
            let (release, problem) = self.fetch_error.as_ref()?;
            (wanted == Some(release)).then(|| problem.clone())
        };
        let of_trial = || {
            // Another release of the version that runs may have failed.
            let wanted = wanted.filter(|_| phase != UpdatePhase::Current)?;
            let reason = self.record.last_failure(&wanted.release());
            reason.map(str::to_owned)
        };
        let ReleaseId {
            version,
            head_digest,
        } = self.machine.release().clone();
        let status = UpdateStatus {
            version,
            head_digest,
            role: self.machine.role(),
            wanted: wanted.map(|wanted| wanted.version.clone()),
            phase,
            last_error: problem
                .or_else(of_fetch)
                .or_else(of_trial)
                .unwrap_or_default(),
            failures: self.failures,
            failed: self.record.failed.clone(),
        };
        let shown = self.status.get();
        if shown == status {
            return;
        }
        if shown.phase != phase && !status.last_error.is_empty() {
            let reason = &status.last_error;
            warn!(phase = phase.name(), reason, "self-update");
        } else if shown.phase != phase {
            info!(phase = phase.name(), "self-update");
        }
        self.status.set(status.clone());
        keep_status(&self.files, &status);
    }
}

fn keep_status(files: &UpdateFiles, status: &UpdateStatus) {
    if let Err(problem) = files.keep_status(status) {
        let problem = format!("{problem:#}");
        warn!(error = problem, "the status of self-update is not kept");
    }
}

/// The role of this program, and the record.
fn identify(files: &UpdateFiles) -> Result<(UpdateMachine, UpdateRecord)> {
    let own = std::env::current_exe().context("this program has no file")?;
    let meta = fs::metadata("/proc/self/exe").context("this program has no file")?;
    let built = built_version()?;
    let itself = InstalledProgram::of(built.clone(), &meta);
    let kept = files.record();
    let Some(file) = files.file_of(&own) else {
        let record = kept.filter(|record| record.installed == itself);
        let record = record.unwrap_or_else(|| UpdateRecord::new(itself));
        let release = ReleaseId {
            version: built,
            head_digest: record.installed_head.clone(),
        };
        let machine = UpdateMachine::new(ProgramRole::Installed, release);
        return Ok((machine, record));
    };
    let record = kept.unwrap_or_else(|| UpdateRecord::new(itself));
    let trial = record.trial.as_ref();
    let trial = trial.filter(|trial| trial.program.file == file);
    let confirmed = record.confirmed.as_ref();
    let confirmed = confirmed.filter(|program| program.file == file);
    let (role, release) = match (trial, confirmed) {
        (Some(trial), _) => (ProgramRole::Trial, trial.release()),
        (None, Some(program)) => (ProgramRole::Confirmed, program.release()),
        (None, None) => {
            let head_digest = None;
            let version = built;
            (
                ProgramRole::Stray,
                ReleaseId {
                    version,
                    head_digest,
                },
            )
        }
    };
    Ok((UpdateMachine::new(role, release), record))
}
