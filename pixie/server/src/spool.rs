//! Boots that control has not been told yet: a bounded queue on disk.

use std::sync::Arc;

use agents_kit::{Delivery, DiskSpool, Spooled, StateDir};
use proto_types::{MacAddr, MachineId};
use tokio_util::sync::CancellationToken;

use crate::control::{ControlError, Seen};
use crate::state::Shared;

/// Events in the queue. A full queue drops the oldest event that a later boot of the same machine
/// and card has overtaken, else the oldest.
const EVENTS_MAX: usize = 4096;
const FILE: &str = "seen.json";

/// The queue of unsent events.
pub(crate) type Spool = DiskSpool<Seen>;

impl Spooled for Seen {
    type Key = (MachineId, MacAddr);

    fn key(&self) -> Self::Key {
        (self.machine, self.mac)
    }
}

/// The spool in pixie's state directory.
pub(crate) fn open(dir: StateDir) -> Spool {
    DiskSpool::open(dir, FILE, EVENTS_MAX)
}

/// Sends the queued events in order, until stopped.
pub(crate) async fn run_spool(shared: Arc<Shared>, stop: CancellationToken) {
    let tell = |seen: Seen| {
        let shared = Arc::clone(&shared);
        async move {
            match shared.control.seen(seen.clone()).await {
                Ok(_) => {
                    shared.control_answered();
                    Delivery::Done
                }
                // A refused event is dropped: a retry would be refused again and would block the
                // events behind it.
                Err(ControlError::Refused(reason)) => {
                    tracing::warn!(
                        machine = %seen.machine, mac = %seen.mac, reason, "event refused"
                    );
                    Delivery::Done
                }
                Err(ControlError::Away(_)) => Delivery::Away,
            }
        }
    };
    shared.spool.run(tell, stop).await;
}
