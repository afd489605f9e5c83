//! A switch in memory, with faults on demand.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::lldp::Neighbours;
use crate::model::{Place, PortObserved, SegmentObserved, SwitchState};
use crate::{Delta, OsError, SwitchOs};

/// A switch that exists only in memory; clones are the same switch.
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
    /// Changes that fail from now on.
    faults: u32,
}

impl Stub {
    /// A switch that is in this state.
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

    /// A switch whose ports are up and belong to nobody, as after it was started.
    #[must_use]
    pub fn with_ports(names: &[&str]) -> Self {
        let port = PortObserved {
            mac: [2, 0, 0, 0, 0, 1],
            admin_up: true,
            oper_up: true,
            place: Place::Isolated,
        };
        let ports = names.iter();
        Self::new(SwitchState {
            ports: ports
                .map(|name| ((*name).to_owned(), port.clone()))
                .collect(),
            ..SwitchState::default()
        })
    }

    /// Lets the next `count` changes fail.
    pub fn fail_next(&self, count: u32) {
        self.lock().faults = count;
    }

    /// Every change that was carried out so far.
    #[must_use]
    pub fn applied(&self) -> Vec<Delta> {
        self.lock().applied.clone()
    }

    /// Changes the switch behind the agent's back.
    pub fn drift(&self, change: impl FnOnce(&mut SwitchState)) {
        change(&mut self.lock().state);
        self.changed.notify_one();
    }

    /// Where one port is now; `None` for a port that is switched off or not there.
    #[must_use]
    pub fn place(&self, port: &str) -> Option<Place> {
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

    /// Its own: a switch in memory has no cables to speak on.
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
        Delta::Isolate { port } => port_of(state, port)?.place = Place::Isolated,
        Delta::Move { port, vni } => port_of(state, port)?.place = Place::Segment(*vni),
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
