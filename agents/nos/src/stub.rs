//! A switch in memory, with faults on demand.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::lldp::Neighbours;
use crate::place::PortPlace;
use crate::state::{PortObserved, SegmentObserved, SwitchState};
use crate::{Delta, OsError, SwitchOs};

/// A switch in memory. Clones are the same switch.
#[derive(Debug, Clone, Default)]
pub struct Stub {
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Notify>,
    neighbours: Neighbours,
}

#[derive(Debug, Default)]
struct Inner {
    state: SwitchState,
    applied: Vec<Delta>,
    /// Number of next changes that fail.
    faults: u32,
}

impl Stub {
    /// A switch in this state.
    #[must_use]
    pub fn new(state: SwitchState) -> Self {
        let inner = Inner {
            state,
            ..Inner::default()
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            ..Self::default()
        }
    }

    /// A switch whose ports are up and isolated, as after its start.
    #[must_use]
    pub fn with_ports(names: &[&str]) -> Self {
        let port = PortObserved {
            mac: [2, 0, 0, 0, 0, 1],
            admin_up: true,
            oper_up: true,
            place: PortPlace::Isolated,
        };
        let ports = names.iter();
        Self::new(SwitchState {
            ports: ports
                .map(|name| ((*name).to_owned(), port.clone()))
                .collect(),
            ..SwitchState::default()
        })
    }

    /// Makes the next `count` changes fail.
    pub fn fail_next(&self, count: u32) {
        self.lock().faults = count;
    }

    /// All changes applied so far.
    #[must_use]
    pub fn applied(&self) -> Vec<Delta> {
        self.lock().applied.clone()
    }

    /// Changes the switch behind the agent's back.
    pub fn drift(&self, change: impl FnOnce(&mut SwitchState)) {
        change(&mut self.lock().state);
        self.changed.notify_one();
    }

    /// The place of a port. `None` if the port is down or does not exist.
    #[must_use]
    pub fn place(&self, port: &str) -> Option<PortPlace> {
        let inner = self.lock();
        let port = inner.state.ports.get(port)?;
        (port.admin_up && port.oper_up).then(|| port.place.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl SwitchOs for Stub {
    fn vendor(&self) -> &'static str {
        "stub"
    }

    fn version(&self) -> String {
        String::new()
    }

    async fn observe(&self) -> Result<SwitchState, OsError> {
        Ok(self.lock().state.clone())
    }

    async fn apply(&self, delta: &Delta) -> Result<(), OsError> {
        let mut inner = self.lock();
        if inner.faults > 0 {
            inner.faults -= 1;
            return Err(OsError::Injected(format!("{delta:?}")));
        }
        carry_out(&mut inner.state, delta)?;
        inner.applied.push(delta.clone());
        Ok(())
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Its own table: a switch in memory has no cables for LLDP.
    fn neighbours(&self) -> Option<Neighbours> {
        Some(self.neighbours.clone())
    }
}

fn carry_out(state: &mut SwitchState, delta: &Delta) -> Result<(), OsError> {
    match delta {
        Delta::EnsureSegment { vni, mtu } => {
            let segment = state
                .segments
                .entry(*vni)
                .or_insert_with(|| SegmentObserved {
                    mtu: *mtu,
                    remotes: std::collections::BTreeSet::new(),
                    intact: true,
                });
            segment.mtu = *mtu;
            segment.intact = true;
        }
        Delta::RemoveSegment { vni } => {
            state.segments.remove(vni);
        }
        Delta::AddRemote { vni, remote } => {
            if let Some(segment) = state.segments.get_mut(vni) {
                segment.remotes.insert(*remote);
            }
        }
        Delta::RemoveRemote { vni, remote } => {
            if let Some(segment) = state.segments.get_mut(vni) {
                segment.remotes.remove(remote);
            }
        }
        Delta::Isolate { port } => port_of(state, port)?.place = PortPlace::Isolated,
        Delta::Move { port, vni } => port_of(state, port)?.place = PortPlace::Segment(*vni),
        Delta::SetAdmin { port, up } => {
            let port = port_of(state, port)?;
            port.admin_up = *up;
            port.oper_up = *up;
        }
    }
    Ok(())
}

fn port_of<'a>(state: &'a mut SwitchState, name: &str) -> Result<&'a mut PortObserved, OsError> {
    state
        .ports
        .get_mut(name)
        .ok_or_else(|| OsError::NoInterface(name.to_owned()))
}
