//! Signs of life of machines and partitions whose agents are the published stack's.

use std::future::Future;
use std::pin::Pin;

use control_gate::Caller;
use control_gate::refusal::of_store;
use control_state::life::restored;
use control_state::{EventKind, EventLog, MachineEvent};
use proto_types::{MachineId, PartitionId};
use tonic::Status;

use crate::Upstream;

/// Where nobody keeps signs of life in memory, they are written down this often, milliseconds: a
/// machine that is silent for five minutes is dead.
const ALIVE_WRITTEN_MS: u64 = 120_000;

/// Reports that the agent is alive.
pub(crate) type Beat =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), Status>> + Send>> + Send + Sync>;

impl Upstream {
    /// An agent of a partition said something; nothing in a partition that nobody hears is judged.
    pub(crate) fn hears_partition(&self, partition: &PartitionId) {
        self.presence.heard_partition(partition, self.gate.now());
    }

    /// `true` if a restored state waits for its operator. What comes over the public API is no
    /// proof that a machine is what the backup knows: tokens of machines go through their boot
    /// server.
    fn is_held(&self) -> Result<bool, Status> {
        let held = self
            .gate
            .store
            .read_local(|tables| restored(tables).is_some());
        held.map_err(of_store)
    }

    /// A machine said something. The leader keeps that in memory; what another node heard is
    /// written down now and then.
    ///
    /// # Errors
    /// As [`control_gate::ServiceContext::propose`].
    pub(crate) async fn hears_machine(
        &self,
        caller: &Caller,
        machine: MachineId,
    ) -> Result<(), Status> {
        if self.is_held()? {
            return Ok(());
        }
        let now = self.gate.now();
        if self.gate.store.is_leader() {
            self.presence.heard_machine(machine, now);
            return Ok(());
        }
        let last = self.gate.store.read_local(|tables| {
            let log = tables.get::<EventLog>(&machine);
            log.map(|log| log.last_event_time)
        });
        let last = last.map_err(of_store)?;
        if last.is_none_or(|at| now.since_ms(at) < ALIVE_WRITTEN_MS) {
            return Ok(());
        }
        let op = MachineEvent {
            id: machine,
            kind: EventKind::Alive,
            message: String::new(),
            time: now,
        };
        self.gate.propose(caller, op).await.map(drop)
    }
}
