//! The agent: keeps the kernel's table as the configuration file and its sources say.

mod drift;

use std::sync::Arc;
use std::time::Instant;

use agents_router_macs::DeviceNames;
use agents_update::SelfUpdate;
use anyhow::{Context as _, Result};
use base_runtime::Chain;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::admit::{Admitted, ObjectAdmission};
use crate::audit::AuditSchedule;
use crate::candidate::CandidateWorker;
use crate::file_stamp::FileStamp;
use crate::forwarding::ForwardingGate;
use crate::monitor::{Sampler, StatisticsListener};
use crate::monitor_reports::MonitorReports;
use crate::netlink::Kernel;
use crate::pause::FailureCount;
use crate::readiness::AliveNotices;
use crate::services::AgentServices;
use crate::source::{CollectedObjects, SourceSet};
use crate::state::{FirewallState, Loaded, ObjectsError, write_rules_file};
use crate::trial::{Outcome, TrialConditions, apply};
use crate::update::{PROGRAM, UpdateView};

pub use crate::agent_files::AgentFiles;
pub use crate::run_end::RunEnd;

/// Bridges and tunnels of networks, as hammer names them.
const DEVICES: DeviceNames = DeviceNames {
    bridge: "vlan",
    tunnel: "vni",
};

/// The agent while it runs.
#[derive(Debug)]
struct FirewallAgent {
    files: AgentFiles,
    state: FirewallState,
    kernel: Kernel,
    sources: SourceSet,
    /// The newest snapshot of each source; until it answers, the last good one.
    collected: CollectedObjects,
    /// The configuration that is followed. `None` if there was never a valid one.
    wanted: Option<Loaded>,
    /// `true` if the configuration, or a snapshot, changed since it was last applied.
    is_pending: bool,
    /// Checks objects; one that is unchanged is not checked again.
    admission: ObjectAdmission,
    /// The rules that should be in force.
    in_force: Arc<Admitted>,
    /// `true` if they are those of a configuration, and not the ones that drop everything.
    is_configured: bool,
    /// The file as it was last read. `None` before the first time.
    seen: Option<FileStamp>,
    /// `true` if it was valid then.
    is_valid: bool,
    /// `true` if its rules were applied since then.
    is_applied: bool,
    /// Generation of the kernel's rules when the table was last compared. `None` if it must be.
    generation: Option<u32>,
    services: AgentServices,
    reports: MonitorReports,
    audit: AuditSchedule,
    sampler: Sampler,
    failures: FailureCount,
    forwarding: ForwardingGate,
    candidates: CandidateWorker,
    update: SelfUpdate,
    alive: AliveNotices,
}

/// Runs until it is stopped, or another program takes its place. The rules stay in the kernel then.
///
/// # Errors
/// The state directory or the kernel cannot be opened. A configuration that is wrong is no error:
/// the last good one is in force.
pub async fn run(files: AgentFiles, stop: CancellationToken) -> Result<RunEnd> {
    let state = FirewallState::open(&files.state_dir)?;
    let _lock = state.lock()?;
    let kernel = Kernel::open()?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let services = AgentServices::start(state.path(), &stop)?;
    let update = SelfUpdate::open(PROGRAM, state.sealed())?;
    let mut agent = FirewallAgent {
        files,
        services,
        state,
        kernel,
        sources: SourceSet::default(),
        collected: CollectedObjects::default(),
        wanted: None,
        is_pending: false,
        admission: ObjectAdmission::remembering(),
        in_force: Arc::default(),
        is_configured: false,
        seen: None,
        is_valid: false,
        is_applied: false,
        generation: None,
        reports: MonitorReports::default(),
        audit: AuditSchedule::starting(Instant::now()),
        sampler: Sampler::default(),
        failures: FailureCount::default(),
        forwarding: ForwardingGate::default(),
        candidates: CandidateWorker::default(),
        update,
        alive: AliveNotices::default(),
    };
    agent.boot();
    // They end with the agent; what they have put back stays.
    let mut keepers = JoinSet::new();
    agents_router_macs::keep(DEVICES, &mut keepers).context("cannot watch neighbours")?;
    let _listener = match agent.files.metrics {
        Some(listen) => {
            let (sampler, update) = (agent.sampler.clone(), agent.update.status());
            Some(StatisticsListener::start(listen, sampler, update).await?)
        }
        None => None,
    };
    let end = loop {
        if stop.is_cancelled() {
            break RunEnd::Stopped;
        }
        agent.alive.tick();
        agent.look(&stop).await;
        if agent.follow_update() {
            break RunEnd::OtherProgram;
        }
        tokio::select! {
            () = sleep(agent.failures.pause()) => {}
            () = agent.sources.changed() => {}
            _ = hang_up.recv() => agent.seen = None,
            () = stop.cancelled() => {}
        }
    };
    agent.services.save(&agent.state, true);
    info!("stopped; the rules stay in force");
    Ok(end)
}

impl FirewallAgent {
    /// Looks at the file, the sources and the kernel once, and does what follows.
    async fn look(&mut self, stop: &CancellationToken) {
        self.follow_file();
        self.is_pending |= self.sources.collect(&mut self.collected);
        if self.is_pending {
            self.apply_wanted(stop).await;
        }
        self.heal();
        self.open_forwarding();
        self.follow_distance();
        self.tick_parts();
        let wanted = self.wanted.as_ref();
        let rules = &self.in_force.rules;
        self.reports
            .report(wanted, rules, &self.kernel, &self.sources);
        self.sample();
    }

    /// Does what is due for self-update. `true` if another program takes the place of this one.
    fn follow_update(&mut self) -> bool {
        let is_in_force = self.is_applied && self.generation.is_some() && !self.is_pending;
        let wanted = self.wanted.as_ref();
        let (collected, sources) = (&self.collected, &self.sources);
        let view = UpdateView::new(wanted, self.is_valid, collected, sources, &self.state);
        let is_over = self.update.tick(&view.in_force(is_in_force));
        self.sources.report_update(self.update.status().get());
        is_over
    }

    /// Puts the last good rules in force, before anything else is tried; without them, rules that
    /// drop everything. The sources of the last good configuration are followed until the file
    /// names others.
    fn boot(&mut self) {
        // To read and compile the last good rules takes a while.
        if let Err(error) = self.kernel.close() {
            error!(error = %Chain(&error), "the kernel cannot be closed before it has rules");
        }
        match self.state.last_good() {
            Ok(Some(loaded)) => {
                self.in_force = Arc::clone(&loaded.admitted);
                self.is_configured = true;
                self.collected = loaded.collected.clone();
                self.follow(loaded);
                info!("applying the last good configuration");
            }
            Ok(None) => info!("there is no last good configuration; dropping everything"),
            Err(error) => error!(
                error = format!("{error:#}"),
                "the last good configuration cannot be used; dropping everything"
            ),
        }
        self.heal();
        self.open_forwarding();
        self.services
            .follow_rules(&self.in_force.rules, &self.state);
    }

    /// Has routes keep the distance that the source of the firewall orders, and tells the sources
    /// what they keep.
    fn follow_distance(&self) {
        let wanted = self.wanted.as_ref();
        let ordered = wanted.and_then(|wanted| self.collected.distance(&wanted.config));
        let is_in_force = self.is_configured && self.generation.is_some();
        self.services.follow_distance(ordered, is_in_force);
        self.sources
            .report_routes(self.services.observed_distance());
    }

    /// Opens forwarding if the kernel has the rules.
    fn open_forwarding(&mut self) {
        if self.generation.is_some() {
            self.forwarding.open(&self.in_force.rules);
        }
    }

    /// Follows the sources of a configuration.
    fn follow(&mut self, wanted: Loaded) {
        self.sources.follow(&wanted.config, &self.collected);
        let droptailer = &wanted.config.controllers.firewall.droptailer;
        self.services.follow_droptailer(droptailer);
        self.wanted = Some(wanted);
    }

    /// Reads the file if it changed.
    fn follow_file(&mut self) {
        let stamp = FileStamp::of(&self.files.config);
        if self.seen == Some(stamp) {
            return;
        }
        self.seen = Some(stamp);
        self.is_applied = false;
        let loaded = Loaded::load(&self.files.config, &mut self.admission);
        self.is_valid = loaded.is_ok();
        match loaded {
            Ok(loaded) => {
                // A source that the last configuration did not use may have answered before.
                for (source, objects) in self.state.last_objects(&loaded.config).snapshots() {
                    if self.collected.of(source).is_none() {
                        self.collected.replace(source, Arc::clone(objects));
                    }
                }
                for notice in loaded.config.notices() {
                    warn!(notice, "a field of the configuration has no effect");
                }
                self.follow(loaded);
                self.is_pending = true;
            }
            Err(problem) => error!(
                file = %self.files.config.display(),
                error = %Chain(&problem),
                "the configuration is not valid; the rules stay as they are"
            ),
        }
    }

    /// Applies the configuration with the newest snapshots.
    async fn apply_wanted(&mut self, stop: &CancellationToken) {
        self.is_pending = false;
        let Some(wanted) = self.wanted.clone() else {
            return;
        };
        let loaded = match wanted.with_objects(self.collected.clone(), &mut self.admission) {
            Ok(loaded) => loaded,
            Err(unusable) => {
                warn!(error = %Chain(&unusable), "the rules stay as they are");
                if let ObjectsError::Network(problem) = &unusable {
                    let (problems, reason) = (std::slice::from_ref(problem), problem.to_string());
                    self.sources
                        .report(&self.collected, problems, Some(&reason));
                }
                return;
            }
        };
        for problem in &loaded.admitted.problems {
            warn!(%problem, "an object is refused");
        }
        let conditions = TrialConditions {
            probes: loaded.config.controllers.firewall.probes.clone(),
            confirm_within: None,
        };
        self.generation = None;
        let refusal = match apply(&self.kernel, &self.state, &loaded, &conditions, stop).await {
            Ok(Outcome::Kept(changes)) => {
                info!(
                    firewall = loaded.config.name(),
                    changes = changes.len(),
                    rules = loaded.admitted.rules.rules().count(),
                    "applied"
                );
                self.write_rules_file(&loaded);
                None
            }
            Ok(Outcome::RolledBack(reason)) => {
                error!(reason, "rolled back");
                Some(reason)
            }
            Err(error) => {
                error!(
                    error = format!("{error:#}"),
                    "cannot apply the configuration"
                );
                // Tried again after a pause.
                self.is_pending = true;
                self.failures.add();
                Some(format!("{error:#}"))
            }
        };
        self.conclude(loaded, refusal);
    }

    /// Tells the sources what became of their objects, and takes the rules over if they are in
    /// force.
    fn conclude(&mut self, loaded: Loaded, refusal: Option<String>) {
        let problems = &loaded.admitted.problems;
        self.sources
            .report(&loaded.collected, problems, refusal.as_deref());
        self.is_applied = refusal.is_none();
        if self.is_applied {
            self.in_force = loaded.admitted;
            self.is_configured = true;
        }
        // Also after a rollback: sets of names may have come and gone.
        self.services
            .follow_rules(&self.in_force.rules, &self.state);
    }

    fn write_rules_file(&self, loaded: &Loaded) {
        if let Some(path) = &self.files.rules_file
            && let Err(error) = write_rules_file(path, &loaded.admitted)
        {
            warn!(
                error = format!("{error:#}"),
                "the rules are in force, but not as text"
            );
        }
    }

    /// Reads the counters if the last reading is old enough, and hands them to the sources.
    fn sample(&self) {
        match self.sampler.sample(&self.kernel, &self.in_force.rules) {
            Ok(true) => self.sources.report_statistics(self.sampler.last()),
            Ok(false) => {}
            Err(error) => warn!(error = %Chain(&error), "the counters cannot be read"),
        }
    }

    /// Does the periodic work of the parts beside the rules.
    fn tick_parts(&mut self) {
        self.services.tick(&self.in_force.rules, &self.state);
        let (sources, wanted) = (&mut self.sources, self.wanted.as_ref());
        self.candidates
            .tick(sources, wanted, &self.collected, &self.in_force);
    }
}
