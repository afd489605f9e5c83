use std::sync::Arc;

use tokio::sync::{Notify, mpsc, oneshot};

use super::SourceObjects;
use crate::candidate::RuleComparison;
use crate::config::SourceName;

/// A snapshot that a source asks about.
#[derive(Debug)]
pub struct CandidateQuestion {
    /// The source that the snapshot would be of.
    pub source: SourceName,
    /// The snapshot.
    pub objects: Arc<SourceObjects>,
    /// Takes the comparison, or the reason why there is none. One that nobody waits for any more is
    /// closed.
    pub answer: oneshot::Sender<Result<RuleComparison, String>>,
}

/// A source's way to ask about snapshots.
#[derive(Clone, Debug)]
pub struct CandidateSender {
    pub(super) source: SourceName,
    pub(super) questions: mpsc::Sender<CandidateQuestion>,
    pub(super) wake: Arc<Notify>,
}

/// The questions that wait for the agent: one, whatever sources ask.
#[derive(Debug)]
pub(super) struct CandidateQueue {
    pub(super) sender: mpsc::Sender<CandidateQuestion>,
    pub(super) receiver: mpsc::Receiver<CandidateQuestion>,
}

impl Default for CandidateQueue {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(1);
        Self { sender, receiver }
    }
}

impl CandidateSender {
    /// Asks what a snapshot would change; waits for the answer.
    ///
    /// # Errors
    /// The reason why it cannot be compared.
    pub async fn ask(&self, objects: SourceObjects) -> Result<RuleComparison, String> {
        let (answer, answered) = oneshot::channel();
        let question = CandidateQuestion {
            source: self.source,
            objects: Arc::new(objects),
            answer,
        };
        let gone = || "the agent stops".to_owned();
        self.questions.send(question).await.map_err(|_| gone())?;
        self.wake.notify_one();
        answered.await.map_err(|_| gone())?
    }
}
