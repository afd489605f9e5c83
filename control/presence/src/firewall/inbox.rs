use std::sync::Arc;

use parking_lot::Mutex;
use proto_types::{AllocationId, MachineId};
use tokio::sync::watch;

use super::RuleCandidate;
use super::desks::CandidateDesks;

/// The candidates that a firewall is asked about. While it exists, the firewall counts as connected.
#[derive(Debug)]
pub struct CandidateInbox {
    desks: Arc<Mutex<CandidateDesks>>,
    machine: MachineId,
    number: u64,
    candidates: watch::Receiver<Option<Arc<RuleCandidate>>>,
}

impl CandidateInbox {
    pub(super) fn open(
        desks: &Arc<Mutex<CandidateDesks>>,
        machine: MachineId,
        allocation: AllocationId,
    ) -> Self {
        let (number, candidates) = desks.lock().open(machine, allocation);
        Self {
            desks: Arc::clone(desks),
            machine,
            number,
            candidates,
        }
    }

    /// Waits for the next candidate. `None` means that a newer inbox has replaced this one.
    pub async fn next(&mut self) -> Option<Arc<RuleCandidate>> {
        loop {
            self.candidates.changed().await.ok()?;
            let newest = self.candidates.borrow_and_update().clone();
            if newest.is_some() {
                return newest;
            }
        }
    }
}

impl Drop for CandidateInbox {
    fn drop(&mut self) {
        self.desks.lock().close(self.machine, self.number);
    }
}
