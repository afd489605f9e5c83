//! The agent: keeps the kernel's table as the configuration file says.

use std::path::PathBuf;
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
        rules: RuleSet::default(),
        seen: None,
        generation: None,
    };
    agent.boot();
    while !stop.is_cancelled() {
        agent.follow_file(&stop).await;
        agent.heal();
        agent.services.tick(&agent.rules, &agent.state);
        tokio::select! {
            () = sleep(TICK) => {}
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
    /// drop everything.
    fn boot(&mut self) {
        match self.state.last_good() {
            Ok(Some(loaded)) => {
                let droptailer = &loaded.config.controllers.firewall.droptailer;
                self.services.follow_droptailer(droptailer);
                self.rules = loaded.admitted.rules;
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

    /// Applies the file if it changed.
    async fn follow_file(&mut self, stop: &CancellationToken) {
        let stamp = self.stamp();
        if self.seen == Some(stamp) {
            return;
        }
        self.seen = Some(stamp);
        let loaded = match Loaded::load(&self.files.config) {
            Ok(loaded) => loaded,
            Err(problem) => {
                error!(
                    file = %self.files.config.display(),
                    error = %Chain(&problem),
                    "the configuration is not valid; the rules stay as they are"
                );
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
        match apply(&self.kernel, &self.state, &loaded, &conditions, stop).await {
            Ok(Outcome::Kept(changes)) => {
                info!(
                    firewall = loaded.config.name(),
                    changes = changes.len(),
                    rules = loaded.admitted.rules.rules().count(),
                    "applied"
                );
                self.write_rules_file(&loaded);
                let droptailer = &loaded.config.controllers.firewall.droptailer;
                self.services.follow_droptailer(droptailer);
                self.rules = loaded.admitted.rules;
                self.services.follow_rules(&self.rules, &self.state);
            }
            Ok(Outcome::RolledBack(reason)) => {
                error!(reason, "rolled back");
                self.services.follow_rules(&self.rules, &self.state);
            }
            Err(error) => {
                error!(
                    error = format!("{error:#}"),
                    "cannot apply the configuration"
                );
                // The next tick tries again.
                self.seen = None;
            }
        }
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
