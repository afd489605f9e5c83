//! The passing of time: machines that fell silent, orders and tickets that ran out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use control_authz::{Permit, SystemActor};
use control_state::{Command, EventLog, Tables, Tick, apply};
use control_store::Store;
use proto_types::{MachineId, PartitionId, Timestamp};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// How often the leader looks whether time changed anything.
pub const TICK_INTERVAL: Duration = Duration::from_secs(2);
/// A heartbeat is written only when the last one on record is this much older, milliseconds:
/// less than half of the silence after which a machine counts as dead.
const HEARD_STEP_MS: u64 = 120_000;
const ACTOR: &str = "system:reconcile";

/// What the sessions of this node know of the fleet, kept in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// Since when this node listens to agents.
    pub listening_since: Timestamp,
    /// When each machine was last heard.
    pub heard: BTreeMap<MachineId, Timestamp>,
    /// Partitions none of whose agents has a session: nothing in them is judged.
    pub unobserved: BTreeSet<PartitionId>,
}

/// Who keeps the sessions.
pub trait Observer: fmt::Debug + Send + Sync {
    fn observe(&self) -> Observation;
}

pub(crate) async fn run(
    store: Store<Tables>,
    observer: Arc<dyn Observer>,
    stop: CancellationToken,
) {
    let permit = Permit::system(SystemActor::Reconcile);
    let mut ticks = interval(TICK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if !store.is_leader() {
            continue;
        }
        let now = store.now();
        let observation = observer.observe();
        // A shallow copy: the objects themselves are shared.
        let command = match store.read_local(Tables::clone) {
            Ok(tables) => plan(tables, now, observation),
            Err(error) => {
                warn!(%error, "the state cannot be read");
                return;
            }
        };
        if let Some(command) = command
            && let Err(error) = store.propose(&permit, &command).await
        {
            // The next tick sees the same and tries again.
            warn!(%error, "the passing of time was not recorded");
        }
    }
}

/// The command that records what time changed; `None` when it changed nothing.
fn plan(mut tables: Tables, now: Timestamp, observation: Observation) -> Option<Command> {
    let mut heard = observation.heard;
    heard.retain(|machine, at| {
        let known = tables
            .get::<EventLog>(machine)
            .map(|log| log.last_event_time);
        known.is_none_or(|known| at.since_ms(known) > HEARD_STEP_MS)
    });
    let tick = Tick {
        listening_since: observation.listening_since,
        unobserved: observation.unobserved,
        heard,
    };
    let command = Command::new(now, ACTOR, tick);
    let outcome = apply(&mut tables, &command);
    (!outcome.changes.is_empty()).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_cluster_is_silent() {
        let observation = Observation::default();
        assert_eq!(
            plan(
                Tables::default(),
                Timestamp::from_ms(1_000_000),
                observation
            ),
            None
        );
    }

    #[test]
    fn a_machine_that_nobody_knows_is_not_written() {
        let mut observation = Observation::default();
        let machine: MachineId = "6f1c0001-1c2d-4e0f-8a5b-0123456789ab"
            .parse()
            .expect("a machine");
        observation
            .heard
            .insert(machine, Timestamp::from_ms(1_000_000));
        assert_eq!(
            plan(
                Tables::default(),
                Timestamp::from_ms(1_000_001),
                observation
            ),
            None
        );
    }
}
