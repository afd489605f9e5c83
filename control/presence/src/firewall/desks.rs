use std::collections::BTreeMap;
use std::sync::Arc;

use proto_types::{AllocationId, MachineId};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use super::asker::CandidateAsker;
use super::{CandidateEffect, CandidateEnd, RuleCandidate};

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
    asker: CandidateAsker,
    answer: oneshot::Sender<CandidateEnd>,
}

/// The candidates that wait for their firewalls. One firewall is asked about one at a time; the
/// operator's question ends that of a project.
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
    ) -> Result<oneshot::Receiver<CandidateEnd>, CandidateEnd> {
        let asker = CandidateAsker::of(&candidate);
        let asked = self.desks.values().filter_map(|desk| desk.asked.as_ref());
        let has_place = asker.has_place(asked.map(|asked| &asked.asker));
        let desk = self.desks.get_mut(&candidate.machine);
        let Some(desk) = desk.filter(|desk| desk.allocation == candidate.allocation) else {
            return Err(CandidateEnd::NotConnected);
        };
        let present = desk.asked.as_ref();
        let is_kept = present.is_some_and(|present| !asker.precedes(&present.asker));
        if is_kept || !has_place {
            return Err(CandidateEnd::Busy);
        }
        if let Some(ended) = desk.end() {
            // Its caller may have gone this moment.
            drop(ended.answer.send(CandidateEnd::Busy));
        }
        let (answer, answered) = oneshot::channel();
        desk.asked = Some(AskedCandidate {
            id: candidate.id,
            asker,
            answer,
        });
        desk.sender.send_replace(Some(Arc::new(candidate)));
        Ok(answered)
    }

    /// Takes what a firewall says about a candidate. One that nobody waits for is dropped.
    pub(super) fn take_effect(&mut self, machine: MachineId, id: Uuid, effect: CandidateEffect) {
        if let Some(asked) = self.end(machine, id) {
            // The caller may have gone this moment.
            drop(asked.answer.send(CandidateEnd::Answered(Box::new(effect))));
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
    use crate::firewall::asker::WAITING_EACH_MAX;

    fn id<T: From<Uuid>>(number: u128) -> T {
        T::from(Uuid::from_u128(number))
    }

    fn candidate(question: u128, machine: u128, allocation: u128) -> RuleCandidate {
        RuleCandidate {
            id: id(question),
            asker: Some(id(1)),
            tenant: None,
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
        let end = CandidateEnd::Answered(Box::new(effect));
        assert_eq!(answer.try_recv(), Ok(end));
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
    fn a_question_of_the_operator_ends_that_of_a_project() {
        let mut desks = CandidateDesks::default();
        let (_, mut inbox) = desks.open(id(1), id(1));
        let operators = |question| RuleCandidate {
            asker: None,
            ..candidate(question, 1, 1)
        };
        let mut projects = desks.ask(candidate(1, 1, 1)).unwrap();
        let mut answer = desks.ask(operators(2)).unwrap();
        assert_eq!(projects.try_recv(), Ok(CandidateEnd::Busy));
        let seen = inbox.borrow_and_update().clone().unwrap();
        assert_eq!(seen.id, id::<Uuid>(2));
        // The caller of the ended question gives up another one than that which waits now.
        desks.give_up(id(1), id(1));
        desks.take_effect(id(1), id(1), CandidateEffect::default());
        for further in [candidate(3, 1, 1), operators(4)] {
            assert_eq!(refused(&mut desks, further), CandidateEnd::Busy);
        }
        assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
        desks.take_effect(id(1), id(2), CandidateEffect::default());
        let end = CandidateEnd::Answered(Box::default());
        assert_eq!(answer.try_recv(), Ok(end));
    }

    #[test]
    fn the_waiting_candidates_end_with_the_session() {
        let mut desks = CandidateDesks::default();
        let (number, _inbox) = desks.open(id(1), id(1));
        let mut first = desks.ask(candidate(1, 1, 1)).unwrap();
        // A newer inbox of the firewall stays when the older one closes.
        let (newer, _inbox) = desks.open(id(1), id(1));
        assert_eq!(first.try_recv(), Err(TryRecvError::Closed));
        desks.close(id(1), number);
        let mut second = desks.ask(candidate(2, 1, 1)).unwrap();
        desks.close(id(1), newer);
        assert_eq!(second.try_recv(), Err(TryRecvError::Closed));
    }

    /// Asks a further firewall for a project of a tenant, or for an administrator.
    fn ask(
        desks: &mut CandidateDesks,
        machine: &mut u128,
        asker: Option<(u128, &str)>,
    ) -> Option<oneshot::Receiver<CandidateEnd>> {
        *machine += 1;
        let (_, _inbox) = desks.open(id(*machine), id(1));
        let candidate = RuleCandidate {
            asker: asker.map(|(project, _)| id(project)),
            tenant: asker.map(|(_, tenant)| tenant.parse().unwrap()),
            ..candidate(1, *machine, 1)
        };
        desks.ask(candidate).ok()
    }

    #[test]
    fn the_projects_of_a_tenant_have_one_share_and_the_operator_has_its_own() {
        let mut desks = CandidateDesks::default();
        let mut machine = 0;
        let mut answers = Vec::new();
        // Four projects of one tenant, each with eight firewalls.
        for question in 0..32_u128 {
            answers.extend(ask(
                &mut desks,
                &mut machine,
                Some((question / 8, "greedy")),
            ));
        }
        assert_eq!(answers.len(), WAITING_EACH_MAX);
        for (asker, wanted) in [(Some((9, "other")), 6), (None, WAITING_EACH_MAX)] {
            let all = (0..32).filter_map(|_| ask(&mut desks, &mut machine, asker));
            let all: Vec<_> = all.collect();
            assert_eq!(all.len(), wanted, "{asker:?}");
            answers.extend(all);
        }
        // Eight greedy tenants leave a place for another one.
        for tenant in ["t3", "t4", "t5", "t6", "t7", "t8"] {
            let all = (0..32).filter_map(|_| ask(&mut desks, &mut machine, Some((1, tenant))));
            let all: Vec<_> = all.collect();
            assert!(!all.is_empty(), "{tenant}");
            answers.extend(all);
        }
        assert!(ask(&mut desks, &mut machine, Some((1, "t9"))).is_some());
        // The places come back.
        desks.end_all();
        assert!(ask(&mut desks, &mut machine, Some((1, "greedy"))).is_some());
    }
}
