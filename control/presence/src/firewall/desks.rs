use std::collections::BTreeMap;
use std::sync::Arc;

use proto_types::{AllocationId, MachineId, ProjectId};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use super::{CandidateEffect, CandidateEnd, RuleCandidate};

/// Most candidates that wait for firewalls at once. Each may have two MiB. Further ones are refused.
const WAITING_MAX: usize = 32;
/// Most candidates of one asker that wait at once: as many as one call asks. Without it two calls
/// could keep every other project from asking.
const WAITING_EACH_MAX: usize = 8;

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
    asker: Option<ProjectId>,
    answer: oneshot::Sender<CandidateEffect>,
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

    /// Ends every question.
    pub(super) fn end_all(&mut self) {
        for desk in self.desks.values_mut() {
            desk.end();
        }
    }

    /// Asks a firewall. The answer comes through the receiver, which is closed when the question ends
    /// without one.
    ///
    /// # Errors
    /// The firewall is not asked.
    pub(super) fn ask(
        &mut self,
        candidate: RuleCandidate,
    ) -> Result<oneshot::Receiver<CandidateEffect>, CandidateEnd> {
        let waiting = || self.desks.values().filter_map(|desk| desk.asked.as_ref());
        let is_full = waiting().count() >= WAITING_MAX;
        let mine = waiting().filter(|asked| asked.asker == candidate.asker);
        let has_share = mine.count() < WAITING_EACH_MAX;
        let desk = self.desks.get_mut(&candidate.machine);
        let Some(desk) = desk.filter(|desk| desk.allocation == candidate.allocation) else {
            return Err(CandidateEnd::NotConnected);
        };
        if desk.asked.is_some() || is_full || !has_share {
            return Err(CandidateEnd::Busy);
        }
        let (answer, answered) = oneshot::channel();
        desk.asked = Some(AskedCandidate {
            id: candidate.id,
            asker: candidate.asker,
            answer,
        });
        desk.sender.send_replace(Some(Arc::new(candidate)));
        Ok(answered)
    }

    /// Takes what a firewall says about a candidate. One that nobody waits for is dropped.
    pub(super) fn take_effect(&mut self, machine: MachineId, id: Uuid, effect: CandidateEffect) {
        if let Some(asked) = self.end(machine, id) {
            // The caller may have gone this moment.
            drop(asked.answer.send(effect));
        }
    }

    /// Ends the question about a candidate. `None` if the firewall is not asked about it.
    fn end(&mut self, machine: MachineId, id: Uuid) -> Option<AskedCandidate> {
        let desk = self.desks.get_mut(&machine)?;
        desk.asked.as_ref().filter(|asked| asked.id == id)?;
        desk.end()
    }

    /// Gives up the question about a candidate.
    pub(super) fn give_up(&mut self, machine: MachineId, id: Uuid) {
        drop(self.end(machine, id));
    }
}

impl CandidateDesk {
    /// Ends the question, and frees its content.
    fn end(&mut self) -> Option<AskedCandidate> {
        self.sender.send_replace(None);
        self.asked.take()
    }
}

#[cfg(test)]
mod tests {
    use control_state::RuleTarget;
    use proto_firewall::{RuleContent, RuleOwner};
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn id<T: From<Uuid>>(number: u128) -> T {
        T::from(Uuid::from_u128(number))
    }

    fn candidate(question: u128, machine: u128, allocation: u128) -> RuleCandidate {
        RuleCandidate {
            id: id(question),
            asker: Some(id(1)),
            machine: id(machine),
            allocation: id(allocation),
            set: control_state::RuleSetKey {
                target: RuleTarget::Firewall(id(machine)),
                owner: RuleOwner::Tenant,
            },
            content: RuleContent::default(),
        }
    }

    fn refused(desks: &mut CandidateDesks, candidate: RuleCandidate) -> CandidateEnd {
        desks.ask(candidate).unwrap_err()
    }

    #[test]
    fn a_firewall_is_asked_about_one_candidate_at_a_time() {
        let mut desks = CandidateDesks::default();
        let end = refused(&mut desks, candidate(1, 1, 1));
        assert_eq!(end, CandidateEnd::NotConnected);
        let (_, mut inbox) = desks.open(id(1), id(1));
        let end = refused(&mut desks, candidate(1, 1, 9));
        assert_eq!(end, CandidateEnd::NotConnected, "of an earlier allocation");
        let mut answer = desks.ask(candidate(2, 1, 1)).unwrap();
        let end = refused(&mut desks, candidate(3, 1, 1));
        assert_eq!(end, CandidateEnd::Busy);
        let seen = inbox.borrow_and_update().clone().unwrap();
        assert_eq!(seen.id, id::<Uuid>(2));
        // An answer to an earlier question counts for nothing.
        let effect = CandidateEffect {
            added: 7,
            ..CandidateEffect::default()
        };
        desks.take_effect(id(1), id(1), effect.clone());
        assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
        desks.take_effect(id(1), id(2), effect.clone());
        assert_eq!(answer.try_recv(), Ok(effect));
        assert!(inbox.borrow_and_update().is_none(), "the content is freed");
        // A caller that went away does not block the firewall.
        let _gone = desks.ask(candidate(4, 1, 1)).unwrap();
        desks.give_up(id(1), id(3));
        assert_eq!(refused(&mut desks, candidate(5, 1, 1)), CandidateEnd::Busy);
        desks.give_up(id(1), id(4));
        let mut answer = desks.ask(candidate(5, 1, 1)).unwrap();
        desks.end_all();
        assert_eq!(answer.try_recv(), Err(TryRecvError::Closed));
    }

    #[test]
    fn the_waiting_candidates_are_bounded_and_end_with_the_session() {
        let mut desks = CandidateDesks::default();
        let number = |number: usize| u128::try_from(number).unwrap();
        let all: Vec<_> = (0..=WAITING_MAX)
            .map(|machine| desks.open(id(number(machine)), id(1)))
            .collect();
        let of = |asker: usize, machine: usize| RuleCandidate {
            asker: Some(id(number(asker))),
            ..candidate(1, number(machine), 1)
        };
        let mut answers = Vec::new();
        for machine in 0..WAITING_MAX {
            let asker = machine / WAITING_EACH_MAX;
            answers.push(desks.ask(of(asker, machine)).unwrap());
            if (machine + 1) % WAITING_EACH_MAX == 0 {
                let more = of(asker, WAITING_MAX);
                assert_eq!(refused(&mut desks, more), CandidateEnd::Busy, "its share");
            }
        }
        let another = || of(WAITING_MAX, WAITING_MAX);
        assert_eq!(refused(&mut desks, another()), CandidateEnd::Busy, "full");
        // A newer inbox of the firewall stays when the older one closes.
        let (newer, _inbox) = desks.open(id(0), id(1));
        assert_eq!(answers[0].try_recv(), Err(TryRecvError::Closed));
        desks.close(id(0), all[0].0);
        let mut answer = desks.ask(of(0, 0)).unwrap();
        desks.close(id(0), newer);
        assert_eq!(answer.try_recv(), Err(TryRecvError::Closed));
        assert!(desks.ask(another()).is_ok());
    }
}
