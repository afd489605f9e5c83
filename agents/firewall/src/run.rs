//! The agent: keeps the kernel's table as the configuration file and its sources say.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use base_runtime::Chain;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::compile::compile;
use crate::netlink::Kernel;
use crate::rule::RuleSet;
use crate::services::AgentServices;
use crate::source::{CollectedObjects, SourceSet};
use crate::state::{FirewallState, Loaded, write_rules_file};
use crate::trial::{Outcome, TrialConditions, apply};

/// Pause between two looks at the kernel and at the file. Drift is healed after at most two.
const TICK: Duration = Duration::from_secs(1);

/// Places of the agent's files.
#[derive(Clone, Debug)]
pub struct AgentFiles {
    /// Configuration.
    pub config: PathBuf,
    /// Directory of the last good configuration.
    pub state_dir: PathBuf,
    /// Text of the rules, for others. `None` writes none.
    pub rules_file: Option<PathBuf>,
}

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
    /// Rules that should be in force.
    rules: RuleSet,
    /// The file as it was last read. `None` before the first time.
    seen: Option<FileStamp>,
    /// Generation of the kernel's rules when the table was last compared. `None` if it must be.
    generation: Option<u32>,
    services: AgentServices,
}

/// Properties of a file that change when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    modified: Option<SystemTime>,
    length: Option<u64>,
}

/// Runs until it is stopped. The rules stay in the kernel then.
///
/// # Errors
/// The state directory or the kernel cannot be opened. A configuration that is wrong is no error:
/// the last good one is in force.
pub async fn run(files: AgentFiles, stop: CancellationToken) -> Result<()> {
    let state = FirewallState::open(&files.state_dir)?;
    let _lock = state.lock()?;
    let kernel = Kernel::open()?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let services = AgentServices::start(state.path(), &stop)?;
    let mut agent = FirewallAgent {
        files,
        services,
        state,
        kernel,
        sources: SourceSet::default(),
        collected: CollectedObjects::default(),
        wanted: None,
        is_pending: false,
        rules: RuleSet::default(),
        seen: None,
        generation: None,
    };
    agent.boot();
    while !stop.is_cancelled() {
        agent.follow_file();
        agent.is_pending |= agent.sources.collect(&mut agent.collected);
        if agent.is_pending {
            agent.apply_wanted(&stop).await;
        }
        agent.heal();
        agent.services.tick(&agent.rules, &agent.state);
        tokio::select! {
            () = sleep(TICK) => {}
            () = agent.sources.changed() => {}
            _ = hang_up.recv() => agent.seen = None,
            () = stop.cancelled() => {}
        }
    }
    agent.services.save(&agent.state, true);
    info!("stopped; the rules stay in force");
    Ok(())
}

impl FirewallAgent {
    /// Puts the last good rules in force, before anything else is tried; without them, rules that
    /// drop everything. The sources of the last good configuration are followed until the file
    /// names others.
    fn boot(&mut self) {
        match self.state.last_good() {
            Ok(Some(loaded)) => {
                self.rules = loaded.admitted.rules.clone();
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
        self.services.follow_rules(&self.rules, &self.state);
    }

    /// Follows the sources of a configuration.
    fn follow(&mut self, wanted: Loaded) {
        self.sources.follow(&wanted.config);
        let droptailer = &wanted.config.controllers.firewall.droptailer;
        self.services.follow_droptailer(droptailer);
        self.wanted = Some(wanted);
    }

    /// Reads the file if it changed.
    fn follow_file(&mut self) {
        let stamp = self.stamp();
        if self.seen == Some(stamp) {
            return;
        }
        self.seen = Some(stamp);
        match Loaded::load(&self.files.config) {
            Ok(loaded) => {
                // A source that the last configuration did not use may have answered before.
                for (source, objects) in self.state.last_objects(&loaded.config).snapshots() {
                    if self.collected.of(source).is_none() {
                        self.collected.replace(source, Arc::clone(objects));
                    }
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
        let loaded = match wanted.with_objects(self.collected.clone()) {
            Ok(loaded) => loaded,
            Err(missing) => {
                warn!(error = %Chain(&missing), "the rules stay as they are");
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
                // The next tick tries again.
                self.is_pending = true;
                Some(format!("{error:#}"))
            }
        };
        let Loaded {
            collected,
            admitted,
            ..
        } = loaded;
        self.sources
            .report(&collected, &admitted.problems, refusal.as_deref());
        if refusal.is_none() {
            self.rules = admitted.rules;
        }
        // Also after a rollback: sets of names may have come and gone.
        self.services.follow_rules(&self.rules, &self.state);
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

    /// Compares the kernel's table with the rules if anybody changed rules, and repairs it.
    fn heal(&mut self) {
        match self.kernel.generation() {
            Ok(generation) if self.is_compared(generation) => return,
            Ok(_) => {}
            Err(error) => error!(error = %Chain(&error), "cannot watch the kernel's rules"),
        }
        let is_drift = self.generation.is_some();
        match self.kernel.apply(&compile(&self.rules)) {
            Ok(applied) => {
                let changes = applied.changes;
                if is_drift && !changes.is_empty() {
                    // The table may have been removed with the addresses of names in it.
                    self.services.follow_rules(&self.rules, &self.state);
                    let first = changes.first().map(ToString::to_string);
                    warn!(
                        changes = changes.len(),
                        first, "somebody changed the rules; repaired"
                    );
                }
                // That of the comparison: a change since then is seen by the next tick.
                self.generation = Some(applied.generation);
            }
            Err(error) => {
                error!(error = %Chain(&error), "the kernel's rules differ and cannot be repaired");
                self.generation = None;
            }
        }
    }

    /// `true` if the table of that generation was compared with the rules, or differs from one that
    /// was only by learned addresses.
    fn is_compared(&mut self, generation: u32) -> bool {
        let Some(last) = self.generation else {
            return false;
        };
        if last != generation && !self.services.made_all_since(last, generation) {
            return false;
        }
        self.kernel.adopt(last, generation);
        self.generation = Some(generation);
        true
    }

    fn stamp(&self) -> FileStamp {
        let meta = std::fs::metadata(&self.files.config).ok();
        FileStamp {
            modified: meta.as_ref().and_then(|meta| meta.modified().ok()),
            length: meta.map(|meta| meta.len()),
        }
    }
}
