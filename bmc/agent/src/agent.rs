//! All tasks of the agent, started together and stopped together.

use std::sync::Arc;

use agents_kit::{Agent, KitError, Origin, StateDir, run_desired};
use proto_mesh::{BmcDesired, BmcDesiredRequest, BmcServiceClient};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::bindings::Bindings;
use crate::config::Config;
use crate::discovery::run_discovery;
use crate::driver::Driver;
use crate::fleet::Fleet;
use crate::journal::{End, Journal};
use crate::mesh;
use crate::orders::{Crew, Order, run_orders};
use crate::outbox::run_outbox;
use crate::reach::Reach;
use crate::real::RealDriver;

/// The agent of a partition's BMCs.
pub struct BmcAgent {
    agent: Agent,
    config: Config,
    driver: Arc<dyn Driver>,
    journal: Arc<Journal>,
    bindings: Arc<Bindings>,
    reach: Arc<Reach>,
}

impl std::fmt::Debug for BmcAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BmcAgent")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl BmcAgent {
    /// An agent for real BMCs. Its journal, the bindings of machines and the number of BMCs that it reads
    /// are in the state directory.
    ///
    /// # Errors
    /// [`KitError`] if one of them cannot be read.
    pub fn new(agent: Agent, config: Config, dir: StateDir) -> Result<Self, KitError> {
        let driver = Arc::new(RealDriver::new(config.credentials.clone()));
        Self::with_driver(agent, config, dir, driver)
    }

    /// An agent with another driver.
    ///
    /// # Errors
    /// [`KitError`] if one of its files cannot be read.
    pub fn with_driver(
        agent: Agent,
        config: Config,
        dir: StateDir,
        driver: Arc<dyn Driver>,
    ) -> Result<Self, KitError> {
        Ok(Self {
            agent,
            config,
            driver,
            bindings: Bindings::open(dir.clone())?,
            reach: Reach::open(dir.clone(), agents_update::running_version())?,
            journal: Journal::open(dir)?,
        })
    }

    /// The number of BMCs that it reads, as it is at any moment.
    #[must_use]
    pub fn reach(&self) -> Arc<Reach> {
        Arc::clone(&self.reach)
    }

    /// Works until stopped.
    pub async fn run(self, stop: CancellationToken) {
        let Self {
            agent,
            config,
            driver,
            journal,
            bindings,
            reach,
        } = self;
        let client: BmcServiceClient = agent.client();
        let fleet = Arc::new(Fleet::new(config.bmcs, config.candidates));
        let (wanted, orders) = watch::channel(Vec::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(run_discovery(
            Arc::clone(&fleet),
            Arc::clone(&driver),
            reach,
            client.clone(),
            config.interval,
            stop.clone(),
        ));
        let crew = Crew {
            fleet: Arc::clone(&fleet),
            driver,
            journal: Arc::clone(&journal),
            bindings,
            steps: agent.steps(),
            spans: agent.spans(),
        };
        tasks.spawn(run_orders(crew, orders, stop.clone()));
        tasks.spawn(run_outbox(
            Arc::clone(&journal),
            client.clone(),
            stop.clone(),
        ));
        let on = |message: BmcDesired, origin| {
            take(
                message,
                origin,
                Arc::clone(&fleet),
                Arc::clone(&journal),
                wanted.clone(),
            )
        };
        let open = || client.desired(BmcDesiredRequest {});
        run_desired(&agent, open, agent.last_good("bmc"), on, stop).await;
        while tasks.join_next().await.is_some() {}
    }
}

/// Takes a desired state. Orders in a state from disk are ignored: control may have withdrawn them
/// meanwhile.
async fn take(
    message: BmcDesired,
    origin: Origin,
    fleet: Arc<Fleet>,
    journal: Arc<Journal>,
    wanted: watch::Sender<Vec<Order>>,
) {
    let (term, generation) = (message.term, message.generation);
    fleet.set_candidates(mesh::candidates(&message));
    if origin == Origin::Cache {
        return;
    }
    let (good, bad) = mesh::orders(&message);
    tracing::info!(
        term,
        generation,
        orders = good.len(),
        malformed = bad.len(),
        "desired state"
    );
    for (id, reason) in bad {
        if let Err(error) = journal.end(&id, End::failed(reason)).await {
            tracing::error!(order = id, %error, "journal not written");
        }
    }
    wanted.send_replace(good);
}
