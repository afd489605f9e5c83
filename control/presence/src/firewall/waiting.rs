use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proto_types::MachineId;
use tokio::time::timeout;
use uuid::Uuid;

use super::desks::CandidateDesks;
use super::{CandidateEnd, RuleCandidate};

/// Longest time for a firewall to compare a candidate. Beyond it the caller is told so.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A question that a caller waits for. It ends when the caller goes away: its future is dropped then.
#[derive(Debug)]
struct WaitingQuestion<'a> {
    desks: &'a Mutex<CandidateDesks>,
    machine: MachineId,
    id: Uuid,
}

impl Drop for WaitingQuestion<'_> {
    fn drop(&mut self) {
        self.desks.lock().give_up(self.machine, self.id);
    }
}

/// Asks a firewall, and waits for its answer.
pub(super) async fn compare(
    desks: Arc<Mutex<CandidateDesks>>,
    candidate: RuleCandidate,
) -> CandidateEnd {
    let (machine, id) = (candidate.machine, candidate.id);
    let asked = desks.lock().ask(candidate);
    let answered = match asked {
        Ok(answered) => answered,
        Err(end) => return end,
    };
    let _question = WaitingQuestion {
        desks: &desks,
        machine,
        id,
    };
    match timeout(ANSWER_MAX, answered).await {
        Ok(Ok(end)) => end,
        // The firewall lost its session meanwhile, or another node begins to lead.
        Ok(Err(_)) => CandidateEnd::NotConnected,
        Err(_) => CandidateEnd::TimedOut,
    }
}

#[cfg(test)]
mod tests {
    use control_state::{RuleSetKey, RuleTarget};
    use proto_firewall::{RuleContent, RuleOwner};
    use tokio::task::JoinSet;
    use tokio::time::{Instant, advance};

    use super::*;
    use crate::firewall::{CandidateEffect, CandidateInbox};

    fn id<T: From<Uuid>>(number: u128) -> T {
        T::from(Uuid::from_u128(number))
    }

    fn candidate(question: u128) -> RuleCandidate {
        RuleCandidate {
            id: id(question),
            asker: None,
            tenant: None,
            machine: id(1),
            allocation: id(1),
            set: RuleSetKey {
                target: RuleTarget::Firewall(id(1)),
                owner: RuleOwner::Operator,
            },
            content: RuleContent::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_is_woken_by_the_answer_and_by_the_end_of_the_session() {
        let desks = Arc::<Mutex<CandidateDesks>>::default();
        let mut inbox = CandidateInbox::open(&desks, id(1), id(1));
        let mut callers = JoinSet::new();
        let begun = Instant::now();
        callers.spawn(compare(Arc::clone(&desks), candidate(1)));
        let asked = inbox.next().await.unwrap();
        // An answer that comes before the caller looks is not lost.
        let effect = CandidateEffect::default();
        desks.lock().take_effect(id(1), asked.id, effect.clone());
        let end = callers.join_next().await.unwrap().unwrap();
        assert_eq!(end, CandidateEnd::Answered(Box::new(effect)));
        assert_eq!(begun.elapsed(), Duration::ZERO, "no time passed");

        callers.spawn(compare(Arc::clone(&desks), candidate(2)));
        inbox.next().await.unwrap();
        drop(inbox);
        let end = callers.join_next().await.unwrap().unwrap();
        assert_eq!(end, CandidateEnd::NotConnected);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_ends_with_its_time_and_with_its_caller() {
        let desks = Arc::<Mutex<CandidateDesks>>::default();
        let mut inbox = CandidateInbox::open(&desks, id(1), id(1));
        let mut callers = JoinSet::new();
        callers.spawn(compare(Arc::clone(&desks), candidate(1)));
        inbox.next().await.unwrap();
        advance(ANSWER_MAX).await;
        let end = callers.join_next().await.unwrap().unwrap();
        assert_eq!(end, CandidateEnd::TimedOut);

        callers.spawn(compare(Arc::clone(&desks), candidate(2)));
        inbox.next().await.unwrap();
        let busy = compare(Arc::clone(&desks), candidate(3)).await;
        assert_eq!(busy, CandidateEnd::Busy);
        // The refused one has not given up the other's question.
        let busy = compare(Arc::clone(&desks), candidate(4)).await;
        assert_eq!(busy, CandidateEnd::Busy);
        callers.shutdown().await;
        callers.spawn(compare(Arc::clone(&desks), candidate(5)));
        let asked = inbox.next().await.unwrap();
        assert_eq!(asked.id, id::<Uuid>(5));
    }
}
