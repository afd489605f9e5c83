use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto_types::{AllocationId, MachineId};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::{CandidateEffect, CandidateState, RuleCandidate};

/// Most candidates that wait for firewalls at once. Each may have two MiB.
const WAITING_MAX: usize = 16;
/// Longest time that a candidate waits: longer than its caller does.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// The firewall whose agent has a session here, and the candidate that it was asked about.
#[derive(Debug)]
struct CandidateDesk {
    /// Number of the inbox.
    number: u64,
    allocation: AllocationId,
    sender: watch::Sender<Option<Arc<RuleCandidate>>>,
    /// `None` means that the firewall is asked about nothing.
    asked: Option<AskedCandidate>,
}

#[derive(Debug)]
struct AskedCandidate {
    id: Uuid,
    at: Instant,
    effect: Option<CandidateEffect>,
}

/// The candidates that wait for their firewalls. One firewall is asked about one at a time.
#[derive(Debug, Default)]
pub(super) struct CandidateDesks {
    desks: BTreeMap<MachineId, CandidateDesk>,
    /// Number of the last inbox.
    last: u64,
}

impl CandidateDesks {
    /// Opens the desk of a firewall, in place of an older one.
    pub(super) fn open(
        &mut self,
        machine: MachineId,
        allocation: AllocationId,
    ) -> (u64, watch::Receiver<Option<Arc<RuleCandidate>>>) {
        self.last += 1;
        let (sender, receiver) = watch::channel(None);
        let desk = CandidateDesk {
            number: self.last,
            allocation,
            sender,
            asked: None,
        };
        self.desks.insert(machine, desk);
        (self.last, receiver)
    }

    /// Closes a desk, unless a newer inbox of the firewall has it.
    pub(super) fn close(&mut self, machine: MachineId, number: u64) {
        if self
            .desks
            .get(&machine)
            .is_some_and(|desk| desk.number == number)
        {
            self.desks.remove(&machine);
        }
    }

    /// Forgets what the firewalls were asked about.
    pub(super) fn forget_asked(&mut self) {
        for desk in self.desks.values_mut() {
            desk.end();
        }
    }

    /// Asks a firewall.
    pub(super) fn ask(&mut self, candidate: RuleCandidate) -> CandidateState {
        let now = Instant::now();
        let old = |desk: &&mut CandidateDesk| {
            let asked = desk.asked.as_ref();
            asked.is_some_and(|asked| now >= asked.at + WAIT_MAX)
        };
        self.desks
            .values_mut()
            .filter(old)
            .for_each(CandidateDesk::end);
        let waiting = self.desks.values().filter(|desk| desk.asked.is_some());
        let is_full = waiting.count() >= WAITING_MAX;
        let desk = self.desks.get_mut(&candidate.machine);
        let Some(desk) = desk.filter(|desk| desk.allocation == candidate.allocation) else {
            return CandidateState::NotConnected;
        };
        if desk.asked.is_some() || is_full {
            return CandidateState::Busy;
        }
        desk.asked = Some(AskedCandidate {
            id: candidate.id,
            at: now,
            effect: None,
        });
        desk.sender.send_replace(Some(Arc::new(candidate)));
        CandidateState::Waiting
    }

    /// Takes what a firewall says about a candidate.
    pub(super) fn take_effect(&mut self, machine: MachineId, id: Uuid, effect: CandidateEffect) {
        let desk = self.desks.get_mut(&machine);
        let asked = desk.and_then(|desk| desk.asked.as_mut());
        if let Some(asked) = asked.filter(|asked| asked.id == id) {
            asked.effect = Some(effect);
        }
    }

    /// The state of a candidate. An answer is given once.
    pub(super) fn effect(&mut self, machine: MachineId, id: Uuid) -> CandidateState {
        let desk = self.desks.get_mut(&machine);
        let is_asked =
            |desk: &&mut CandidateDesk| desk.asked.as_ref().is_some_and(|asked| asked.id == id);
        // The firewall lost its session meanwhile, or another node leads.
        let Some(desk) = desk.filter(is_asked) else {
            return CandidateState::NotConnected;
        };
        let effect = desk.asked.as_mut().and_then(|asked| asked.effect.take());
        let Some(effect) = effect else {
            return CandidateState::Waiting;
        };
        desk.end();
        CandidateState::Answered(Box::new(effect))
    }
}

impl CandidateDesk {
    /// Ends the question, and frees its content.
    fn end(&mut self) {
        self.asked = None;
        self.sender.send_replace(None);
    }
}

#[cfg(test)]
mod tests {
    use control_state::RuleTarget;
    use proto_firewall::{RuleContent, RuleOwner};

    use super::*;

    fn id<T: From<Uuid>>(number: u128) -> T {
        T::from(Uuid::from_u128(number))
    }

    fn candidate(question: u128, machine: u128, allocation: u128) -> RuleCandidate {
        RuleCandidate {
            id: id(question),
            machine: id(machine),
            allocation: id(allocation),
            set: control_state::RuleSetKey {
                target: RuleTarget::Firewall(id(machine)),
                owner: RuleOwner::Tenant,
            },
            content: RuleContent::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_firewall_is_asked_about_one_candidate_at_a_time() {
        let mut desks = CandidateDesks::default();
        assert_eq!(desks.ask(candidate(1, 1, 1)), CandidateState::NotConnected);
        let (_, mut inbox) = desks.open(id(1), id(1));
        assert_eq!(
            desks.ask(candidate(1, 1, 9)),
            CandidateState::NotConnected,
            "of an earlier allocation"
        );
        assert_eq!(desks.ask(candidate(2, 1, 1)), CandidateState::Waiting);
        assert_eq!(desks.ask(candidate(3, 1, 1)), CandidateState::Busy);
        let seen = inbox.borrow_and_update().clone().unwrap();
        assert_eq!(seen.id, id::<Uuid>(2));
        assert_eq!(desks.effect(id(1), id(2)), CandidateState::Waiting);
        // An answer to an earlier question counts for nothing.
        let effect = CandidateEffect {
            added: 7,
            ..CandidateEffect::default()
        };
        desks.take_effect(id(1), id(1), effect.clone());
        assert_eq!(desks.effect(id(1), id(2)), CandidateState::Waiting);
        desks.take_effect(id(1), id(2), effect.clone());
        assert_eq!(
            desks.effect(id(1), id(2)),
            CandidateState::Answered(Box::new(effect))
        );
        assert_eq!(desks.effect(id(1), id(2)), CandidateState::NotConnected);
        assert!(inbox.borrow_and_update().is_none(), "the content is freed");
        // A caller that went away does not block the firewall for ever.
        assert_eq!(desks.ask(candidate(4, 1, 1)), CandidateState::Waiting);
        tokio::time::advance(WAIT_MAX).await;
        assert_eq!(desks.ask(candidate(5, 1, 1)), CandidateState::Waiting);
    }

    #[tokio::test]
    async fn the_waiting_candidates_are_bounded_and_end_with_the_session() {
        let mut desks = CandidateDesks::default();
        let number = |number: usize| u128::try_from(number).unwrap();
        let all: Vec<_> = (0..=WAITING_MAX)
            .map(|machine| desks.open(id(number(machine)), id(1)))
            .collect();
        for machine in 0..WAITING_MAX {
            let asked = desks.ask(candidate(1, number(machine), 1));
            assert_eq!(asked, CandidateState::Waiting);
        }
        let one_more = || candidate(1, number(WAITING_MAX), 1);
        assert_eq!(desks.ask(one_more()), CandidateState::Busy);
        // A newer inbox of the firewall stays when the older one closes.
        let (newer, _inbox) = desks.open(id(0), id(1));
        desks.close(id(0), all[0].0);
        assert_eq!(desks.ask(candidate(2, 0, 1)), CandidateState::Waiting);
        desks.close(id(0), newer);
        assert_eq!(desks.effect(id(0), id(2)), CandidateState::NotConnected);
        assert_eq!(desks.ask(one_more()), CandidateState::Waiting);
    }
}
