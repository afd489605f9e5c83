//! Questions and reports about firewalls. Any node answers, by asking the leader.

use std::time::Duration;

use control_state::query::firewall_allocation;
use control_store::{Store, StoreError};
use proto_types::{AllocationId, MachineId, Timestamp};
use uuid::Uuid;

use crate::ReportOutcome;
use crate::firewall::{
    ANSWER_MAX, CandidateEffect, CandidateEnd, CandidateInbox, CandidateOutcome, FirewallAnswer,
    FirewallBooks, FirewallNumbers, FirewallQuestion, FirewallTotals, RuleCandidate,
};
use crate::question::{LeaderAnswer, LeaderQuestion};

/// Longest time for the leader's answer about a candidate: that of the firewall, and the way there
/// and an election.
const COMPARE_MAX: Duration = ANSWER_MAX.saturating_add(Duration::from_secs(4));

/// The firewalls' part of [`Presence`](crate::Presence).
#[derive(Debug, Clone, Copy)]
pub struct FirewallPresence<'a> {
    pub(crate) store: &'a Store,
    pub(crate) books: &'a FirewallBooks,
}

impl FirewallPresence<'_> {
    /// Keeps the counters that a firewall reports. Those of firewalls whose allocation ended are
    /// dropped from time to time.
    pub fn keep(&self, machine: MachineId, numbers: FirewallNumbers) -> ReportOutcome {
        if let Some(mut ended) = self.books.begin_sweep(numbers.at) {
            // All are looked up at once, and with no lock on the record: others report meanwhile.
            let read = self.store.read_local(|tables| {
                ended.retain(|kept| {
                    let current = firewall_allocation(tables, kept.machine);
                    current.is_none_or(|current| current.id != kept.allocation)
                });
            });
            // A store that is shutting down cannot be read; nothing is lost by that.
            if read.is_ok() {
                self.books.end_sweep(&ended);
            }
        }
        self.books.keep(machine, numbers)
    }

    /// Sums over all firewalls since this node began to lead.
    pub fn totals(&self, now: Timestamp) -> FirewallTotals {
        self.books.totals(now)
    }

    /// The last counters of a firewall, as the leader knows them. `None` means that it has none of
    /// this allocation.
    ///
    /// # Errors
    /// When no leader answers.
    pub async fn numbers(
        &self,
        machine: MachineId,
        allocation: AllocationId,
    ) -> Result<Option<FirewallNumbers>, StoreError> {
        let question = about(FirewallQuestion::Numbers(machine));
        let answer: LeaderAnswer = self.store.ask_leader(&question).await?;
        let found = match answer.firewall {
            Some(FirewallAnswer::Numbers(found)) => found,
            _ => None,
        };
        Ok(found.filter(|numbers| numbers.allocation == allocation))
    }

    /// The inbox of a firewall's agent that has a session with this node. A newer one replaces it.
    pub fn open_inbox(&self, machine: MachineId, allocation: AllocationId) -> CandidateInbox {
        self.books.open_inbox(machine, allocation)
    }

    /// Takes what a firewall says about a candidate. One that nobody waits for is dropped.
    pub fn take_effect(&self, machine: MachineId, id: Uuid, effect: CandidateEffect) {
        self.books.take_effect(machine, id, effect);
    }

    /// Asks a firewall what rules would change there. The leader answers when the firewall has.
    ///
    /// # Errors
    /// When no leader answers.
    pub async fn compare(&self, candidate: RuleCandidate) -> Result<CandidateOutcome, StoreError> {
        let question = about(FirewallQuestion::Try(Box::new(candidate)));
        let asked = self.store.ask_leader_within(COMPARE_MAX, &question);
        let answer: LeaderAnswer = asked.await?;
        Ok(match answer.firewall {
            Some(FirewallAnswer::Candidate(end)) => match end {
                CandidateEnd::Answered(effect) => CandidateOutcome::Compared(*effect),
                CandidateEnd::NotConnected => CandidateOutcome::NotConnected,
                CandidateEnd::Busy => CandidateOutcome::Busy,
                CandidateEnd::TimedOut => CandidateOutcome::TimedOut,
            },
            // An older node leads.
            _ => CandidateOutcome::NotKnown,
        })
    }
}

fn about(question: FirewallQuestion) -> LeaderQuestion {
    LeaderQuestion {
        firewall: Some(question),
        ..LeaderQuestion::default()
    }
}
