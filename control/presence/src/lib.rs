//! When each agent and machine was last heard by this node, and which of them have a session: in
//! memory, never in the log.
//!
//! The gateway and the services for published agents tell, the duties of the leader, the API and the
//! doctor ask. Invariant: only what this node heard itself counts. A node that begins to lead
//! begins anew, so that nobody is judged by what another node may have heard.

mod heard;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use control_state::Partition;
use control_store::Store;
use proto_identity::SpiffeId;
use proto_link::{LinkStats, Presence as SessionView, TurnedAway};
use proto_types::{MachineId, PartitionId, Timestamp};

use heard::Heard;

pub use heard::Fleet;

/// What a node knows of the presence of agents and machines. Cheap to clone (`Arc`).
#[derive(Clone)]
pub struct Presence {
    store: Store,
    heard: Arc<Mutex<Heard>>,
    sessions: Arc<OnceLock<SessionView>>,
}

impl std::fmt::Debug for Presence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presence").finish_non_exhaustive()
    }
}

impl Presence {
    /// Listens from now on.
    pub fn new(store: Store) -> Self {
        let heard = Heard::since(store.now());
        Self {
            store,
            heard: Arc::new(Mutex::new(heard)),
            sessions: Arc::default(),
        }
    }

    /// Adds the sessions of the mesh endpoint, once it is bound. A second endpoint changes nothing.
    pub fn watch_sessions(&self, sessions: SessionView) {
        self.sessions.get_or_init(|| sessions);
    }

    /// Begins anew: this node serves the sessions from now on, and what was heard before says
    /// nothing on who is silent.
    pub fn begin(&self) {
        self.with_heard(|heard| *heard = Heard::since(self.store.now()));
    }

    /// An agent of this partition said something.
    pub fn heard_partition(&self, id: &PartitionId, now: Timestamp) {
        self.with_heard(|heard| heard.partition(id, now));
    }

    /// A machine said something.
    pub fn heard_machine(&self, id: MachineId, now: Timestamp) {
        self.with_heard(|heard| heard.machine(id, now));
    }

    /// What is known now of all machines and partitions.
    pub fn fleet(&self) -> Fleet {
        let partitions = self.store.read_local(|tables| {
            let partitions = tables.all::<Partition>();
            partitions.map(|partition| partition.id.clone()).collect()
        });
        // A store that stops has no partitions to be judged.
        let partitions: Vec<PartitionId> = partitions.unwrap_or_default();
        let now = self.store.now();
        self.with_heard(|heard| heard.fleet(partitions.iter(), now))
    }

    /// `true` if an agent or machine has a session; `None` while another node serves sessions.
    pub fn has_session(&self, id: &SpiffeId) -> Option<bool> {
        let sessions = self.sessions.get().filter(|_| self.store.is_leader())?;
        Some(sessions.is_here(id))
    }

    /// Revoked identities whose bearers tried to come in here.
    pub fn turned_away(&self) -> Vec<TurnedAway> {
        let sessions = self.sessions.get();
        sessions.map(SessionView::turned_away).unwrap_or_default()
    }

    /// What the mesh endpoint counted, and who has a session with this node; `None` before it is
    /// bound.
    pub fn link(&self) -> Option<LinkStats> {
        self.sessions.get().map(SessionView::stats)
    }

    fn with_heard<T>(&self, work: impl FnOnce(&mut Heard) -> T) -> T {
        work(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
