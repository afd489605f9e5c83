//! Self-update while the agent runs: carries out what [`UpdateMachine`] decides.

mod staged;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use base_runtime::Chain;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::facts::{UpdateFacts, UpdateStep};
use super::files::UpdateFiles;
use super::machine::UpdateMachine;
use super::phase::{ProgramRole, UpdatePhase};
use super::program::InstalledProgram;
use super::record::UpdateRecord;
use super::release_id::ReleaseId;
use super::stage::{StageJob, StagedRelease, stage};
use super::status::{SharedStatus, UpdateStatus};
use super::view::UpdateView;
use super::wanted::WantedRelease;
use super::{RUNNING, built_version};
use crate::config::SelfUpdateConfig;
use crate::state::{FirewallState, Loaded};

/// Pause before a record that could not be written is written again.
const WRITE_RETRY: Duration = Duration::from_secs(5);

/// A release that was fetched, or was not.
type StageEnd = (WantedRelease, Result<StagedRelease, String>);

/// Self-update of the agent that runs.
#[derive(Debug)]
pub(crate) struct SelfUpdate {
    files: UpdateFiles,
    machine: UpdateMachine,
    record: UpdateRecord,
    tasks: JoinSet<StageEnd>,
    /// The settings that a release is fetched with.
    fetched_by: Option<SelfUpdateConfig>,
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
    pub(crate) fn open(state: &FirewallState) -> Result<Self> {
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
    pub(crate) fn status(&self) -> SharedStatus {
        self.status.clone()
    }

    /// Does what is due. Call it often. `is_in_force` is `true` if the rules of the file are in
    /// the kernel. Returns `true` if the agent has to end, so that another program takes its place.
    pub(crate) fn tick(&mut self, view: &UpdateView<'_>, is_in_force: bool) -> bool {
        let is_healthy = is_in_force && view.is_connected;
        if self.files.take_retry() {
            info!("failed releases are forgotten");
            self.record.failed.clear();
            self.fetch_error = None;
            self.machine.retry_now();
            self.keep_record();
        }
        let (wanted, problem) = match view.wanted() {
            Ok(wanted) => (wanted, None),
            Err(problem) => (None, Some(problem)),
        };
        self.end_stale_fetch(view);
        if self.take_staged(view, wanted.as_ref()) {
            return true;
        }
        self.settle(is_healthy);
        let config = view.config();
        let obstacle = view.obstacle().filter(|_| wanted.is_some());
        let problem = problem.or_else(|| Some(obstacle?.to_owned()));
        let spread = config.map_or(0, |config| config.spread_seconds);
        let facts = UpdateFacts {
            now: self.started.elapsed(),
            is_enabled: config.is_some_and(SelfUpdateConfig::is_possible),
            wanted: wanted.as_ref(),
            is_healthy,
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
                self.fetch(release, view.loaded);
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

    fn fetch(&mut self, wanted: WantedRelease, loaded: Option<&Loaded>) {
        let Some(loaded) = loaded else {
            return;
        };
        let job = StageJob {
            wanted: wanted.clone(),
            running: self.machine.running().clone(),
            config: Arc::clone(&loaded.config),
            text: Arc::clone(&loaded.text),
            files: self.files.clone(),
        };
        self.end_fetch();
        self.fetched_by = Some(loaded.config.controllers.firewall.self_update.clone());
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
    fn end_stale_fetch(&mut self, view: &UpdateView<'_>) {
        if self.fetched_by.is_some() && self.fetched_by.as_ref() != view.config() {
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

    /// Removes the copies of rules from before the update once this program has kept its own.
    fn settle(&mut self, is_healthy: bool) {
        if self.is_settled || !is_healthy || self.machine.role() == ProgramRole::Trial {
            return;
        }
        self.is_settled = true;
        if let Err(problem) = self.files.state().drop_before_update() {
            warn!(error = %Chain(&problem), "rules from before an update are not removed");
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
