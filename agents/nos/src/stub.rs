//! A switch in memory, with faults on demand.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::back_end::{Nos, NosError};
use crate::capability::Capability;
use crate::frr::announced::AnnouncedPrefix;
use crate::interpret::interpret;
use crate::lldp::Neighbours;
use crate::model::{Membership, ModelError, Port, PortName};
use crate::observation::{Observation, PortLink};
use crate::step::Step;
use crate::telemetry::Telemetry;

/// A switch in memory. Clones are the same switch.
#[derive(Debug, Clone)]
pub struct Stub {
    inner: Arc<Mutex<Inner>>,
    capabilities: &'static [Capability],
    changed: Arc<Notify>,
    neighbours: Neighbours,
}

#[derive(Debug, Default)]
struct Inner {
    state: Observation,
    applied: Vec<Step>,
    /// Number of next steps that fail.
    faults: u32,
    telemetry: Telemetry,
    announced: BTreeMap<PortName, Vec<AnnouncedPrefix>>,
}

impl Stub {
    /// A switch in this state, with every capability.
    #[must_use]
    pub fn new(state: Observation) -> Self {
        let inner = Inner {
            state,
            ..Inner::default()
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            capabilities: Capability::ALL,
            changed: Arc::default(),
            neighbours: Neighbours::default(),
        }
    }

    /// A switch whose ports are up and in quarantine, each with its MAC address.
    ///
    /// # Errors
    /// When a name is none of a port.
    pub fn with_links<'a>(
        links: impl IntoIterator<Item = (&'a str, [u8; 6])>,
    ) -> Result<Self, ModelError> {
        let mut state = Observation::default();
        for (name, mac) in links {
            let name = PortName::new(name)?;
            let port = Port {
                admin_up: true,
                mtu: None,
                membership: Membership::Quarantine,
            };
            let link = PortLink { mac, oper_up: true };
            state.model.ports.insert(name.clone(), port);
            state.links.insert(name, link);
        }
        Ok(Self::new(state))
    }

    /// The same switch with other capabilities.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: &'static [Capability]) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Makes the next `count` steps fail.
    pub fn fail_next(&self, count: u32) {
        self.lock().faults = count;
    }

    /// All steps applied so far.
    #[must_use]
    pub fn applied(&self) -> Vec<Step> {
        self.lock().applied.clone()
    }

    /// Changes the switch behind the agent's back.
    pub fn drift(&self, change: impl FnOnce(&mut Observation)) {
        change(&mut self.lock().state);
        self.changed.notify_one();
    }

    /// The place of a port. `None` if the port is down or does not exist.
    #[must_use]
    pub fn place(&self, port: &str) -> Option<Membership> {
        let inner = self.lock();
        let link = inner.state.links.get(port)?;
        let port = inner.state.model.ports.get(port)?;
        (port.admin_up && link.oper_up).then(|| port.membership.clone())
    }

    /// Sets the sessions and counters that the switch tells.
    pub fn set_telemetry(&self, telemetry: Telemetry) {
        self.lock().telemetry = telemetry;
    }

    /// Sets the IP prefixes that the neighbour on a port announces by EVPN.
    pub fn set_announced(&self, port: PortName, prefixes: Vec<AnnouncedPrefix>) {
        self.lock().announced.insert(port, prefixes);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Nos for Stub {
    fn vendor(&self) -> &'static str {
        "stub"
    }

    fn version(&self) -> String {
        String::new()
    }

    fn capabilities(&self) -> &'static [Capability] {
        self.capabilities
    }

    async fn observe(&self) -> Result<Observation, NosError> {
        Ok(self.lock().state.clone())
    }

    async fn apply(&self, step: &Step) -> Result<(), NosError> {
        let mut inner = self.lock();
        if inner.faults > 0 {
            inner.faults -= 1;
            return Err(NosError::Injected(format!("{step:?}")));
        }
        interpret(&mut inner.state.model, step)?;
        // A cable of the stub has a carrier when its port is up.
        if let Step::SetAdmin { port, up } = step
            && let Some(link) = inner.state.links.get_mut(port)
        {
            link.oper_up = *up;
        }
        inner.applied.push(step.clone());
        Ok(())
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }

    async fn announced(&self, port: &PortName) -> Result<Vec<AnnouncedPrefix>, NosError> {
        let inner = self.lock();
        Ok(inner.announced.get(port).cloned().unwrap_or_default())
    }

    async fn telemetry(&self) -> Result<Telemetry, NosError> {
        Ok(self.lock().telemetry.clone())
    }

    /// Its own table: a switch in memory has no cables for LLDP.
    fn neighbours(&self) -> Option<Neighbours> {
        Some(self.neighbours.clone())
    }
}
