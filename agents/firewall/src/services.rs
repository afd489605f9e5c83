//! The parts of the agent that work beside its rules: the DNS proxy, the packet log, and the distance
//! of routes.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base_runtime::Chain;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::config::DroptailerConfig;
use crate::dns::{NameLimits, NameSupervisor};
use crate::drops::droptailer::send_drops;
use crate::drops::{DropLog, DropReader, socket};
use crate::netlink::NetlinkError;
use crate::routes::{DistanceKeeper, ObservedDistance, RouteDistance};
use crate::rule::RuleSet;
use crate::state::FirewallState;

/// Pause between two looks at the addresses of this host.
const ADDRESS_PERIOD: Duration = Duration::from_secs(1);

/// These parts while the agent runs.
#[derive(Debug)]
pub(crate) struct AgentServices {
    names: NameSupervisor,
    log: Arc<DropLog>,
    droptailer: Option<RunningDroptailer>,
    distance: DistanceKeeper,
    tasks: JoinSet<()>,
    stop: CancellationToken,
    /// When the addresses of this host were read last.
    listened_at: Instant,
}

#[derive(Debug)]
struct RunningDroptailer {
    config: DroptailerConfig,
    stop: CancellationToken,
}

impl AgentServices {
    /// Starts to read the packet log. Without it rules are in force all the same.
    ///
    /// # Errors
    /// The kernel's nftables cannot be opened.
    pub(crate) fn start(state_dir: &Path, stop: &CancellationToken) -> Result<Self, NetlinkError> {
        let mut tasks = JoinSet::new();
        let mut services = Self {
            names: NameSupervisor::open(NameLimits::default())?,
            log: Arc::new(DropLog::default()),
            droptailer: None,
            distance: DistanceKeeper::start(&mut tasks, stop.clone()),
            tasks,
            stop: stop.clone(),
            listened_at: Instant::now(),
        };
        if let Err(error) = services.start_log(state_dir) {
            warn!(%error, "dropped packets are only in the kernel's log");
        }
        Ok(services)
    }

    fn start_log(&mut self, state_dir: &Path) -> io::Result<()> {
        let listener = socket::listen(state_dir)?;
        let reader = DropReader::open()?;
        let (log, stop) = (Arc::clone(&self.log), self.stop.clone());
        self.tasks
            .spawn(async move { reader.run(&log, stop).await });
        let (log, stop) = (Arc::clone(&self.log), self.stop.clone());
        self.tasks.spawn(socket::serve(listener, log, stop));
        Ok(())
    }

    /// Follows rules that are in force since now, or whose table was repaired.
    pub(crate) fn follow_rules(&mut self, rules: &RuleSet, state: &FirewallState) {
        self.names.follow(rules, || state.names());
    }

    /// Follows the configuration of the droptailer.
    pub(crate) fn follow_droptailer(&mut self, config: &DroptailerConfig) {
        let is_same = |own: &RunningDroptailer| own.config == *config;
        let is_on = self.droptailer.as_ref();
        if is_on.map_or(!config.enabled, is_same) {
            return;
        }
        if let Some(running) = self.droptailer.take() {
            running.stop.cancel();
        }
        if config.enabled {
            let stop = self.stop.child_token();
            let log = Arc::clone(&self.log);
            self.tasks
                .spawn(send_drops(config.clone(), log, stop.clone()));
            self.droptailer = Some(RunningDroptailer {
                config: config.clone(),
                stop,
            });
        }
    }

    /// Follows the distance of routes that the source orders. The longest while the rules are not in
    /// force.
    pub(crate) fn follow_distance(&self, ordered: Option<RouteDistance>, is_in_force: bool) {
        let distance = ordered.map(|ordered| ordered.with_health(is_in_force));
        self.distance.want(distance);
    }

    /// The distance that the routing daemon had at the last look. `None` before the first one.
    pub(crate) fn observed_distance(&self) -> Option<ObservedDistance> {
        self.distance.observed()
    }

    /// Does periodic work. Call it often.
    pub(crate) fn tick(&mut self, rules: &RuleSet, state: &FirewallState) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended {
                error!(%error, "a part of the agent failed");
            }
        }
        if self.listened_at.elapsed() >= ADDRESS_PERIOD {
            self.listened_at = Instant::now();
            self.names.listen(rules);
        }
        self.save(state, false);
    }

    /// Writes what must outlive the agent.
    pub(crate) fn save(&mut self, state: &FirewallState, is_last: bool) {
        if let Some(bytes) = self.names.unsaved(is_last)
            && let Err(error) = state.keep_names(&bytes)
        {
            warn!(error = %Chain(&error), "the addresses of names are not kept");
        }
    }

    /// `true` if every change of the kernel's rules after generation `last` was a learned address.
    pub(crate) fn made_all_since(&self, last: u32, current: u32) -> bool {
        self.names.service().made_all_since(last, current)
    }
}
