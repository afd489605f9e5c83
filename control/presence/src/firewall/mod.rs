//! Firewalls: their last counters, and the rules that somebody asks them about.
//!
//! Only the leader has either: agents have their sessions with it.

mod answer;
mod asker;
mod candidate;
mod desks;
mod inbox;
mod numbers;
mod question;
mod record;
mod report_outcome;
mod totals;
mod waiting;

use std::sync::Arc;

use parking_lot::Mutex;
use proto_types::{AllocationId, MachineId, Timestamp};
use uuid::Uuid;

pub(crate) use answer::{CandidateEnd, FirewallAnswer};
pub use candidate::{CandidateEffect, CandidateOutcome, RuleCandidate};
use desks::CandidateDesks;
pub use inbox::CandidateInbox;
pub use numbers::{CounterKind, CounterNumber, FirewallNumbers};
pub(crate) use question::FirewallQuestion;
use record::{FirewallAllocation, FirewallRecord};
pub use report_outcome::ReportOutcome;
pub use totals::{CounterSum, FirewallTotals};
pub(crate) use waiting::ANSWER_MAX;

/// The records of firewalls that this node keeps. Cheap to clone (`Arc`).
#[derive(Debug, Clone, Default)]
pub(crate) struct FirewallBooks {
    record: Arc<Mutex<FirewallRecord>>,
    desks: Arc<Mutex<CandidateDesks>>,
}

impl FirewallBooks {
    /// Forgets everything when this node begins to lead.
    pub(crate) fn clear(&self) {
        *self.record.lock() = FirewallRecord::default();
        self.desks.lock().end_all();
    }

    /// Answers a question, as the leader. One about rules may take [`ANSWER_MAX`].
    pub(crate) async fn answer(&self, question: FirewallQuestion) -> FirewallAnswer {
        match question {
            FirewallQuestion::Numbers(machine) => {
                FirewallAnswer::Numbers(self.record.lock().of(machine))
            }
            FirewallQuestion::Try(candidate) => {
                let desks = Arc::clone(&self.desks);
                FirewallAnswer::Candidate(waiting::compare(desks, *candidate).await)
            }
        }
    }

    /// Keeps the counters that a firewall reports.
    pub(crate) fn keep(&self, machine: MachineId, numbers: FirewallNumbers) -> ReportOutcome {
        self.record.lock().keep(machine, numbers)
    }

    /// The allocations whose counters are kept, if it is time to remove those that ended.
    pub(crate) fn begin_sweep(&self, now: Timestamp) -> Option<Vec<FirewallAllocation>> {
        self.record.lock().begin_sweep(now)
    }

    /// Removes the counters of allocations that ended.
    pub(crate) fn end_sweep(&self, ended: &[FirewallAllocation]) {
        self.record.lock().end_sweep(ended);
    }

    /// Sums over all firewalls.
    pub(crate) fn totals(&self, now: Timestamp) -> FirewallTotals {
        self.record.lock().totals(now)
    }

    /// The inbox of a firewall's agent.
    pub(crate) fn open_inbox(
        &self,
        machine: MachineId,
        allocation: AllocationId,
    ) -> CandidateInbox {
        CandidateInbox::open(&self.desks, machine, allocation)
    }

    /// Takes what a firewall says about a candidate.
    pub(crate) fn take_effect(&self, machine: MachineId, id: Uuid, effect: CandidateEffect) {
        self.desks.lock().take_effect(machine, id, effect);
    }
}
