//! Questions about what only the leader knows and the state does not hold, such as the sessions of
//! agents. Any node may ask; the leader answers its followers as it answers itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::codec::{self, AnswerFuture, Answerer, StoreCodecError};
use crate::error::StoreError;
use crate::forward::{ForwardedAnswer, ForwardedRequest};
use crate::machine::StateMachine;
use crate::store::Store;

/// Time limit for an answer, an election included. Beyond it the caller gets
/// [`StoreError::NoQuorum`].
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

impl<M: StateMachine> Store<M> {
    /// Sets the function that answers questions while this node leads. It must not block, and must
    /// not keep a handle of the store, which would stay open. An answer may take seconds: its future
    /// is dropped when nobody waits for it any more. A second function changes nothing.
    pub fn answer_questions<Q, A, F>(&self, answer: impl Fn(Q) -> F + Send + Sync + 'static)
    where
        Q: DeserializeOwned,
        A: Serialize + 'static,
        F: Future<Output = A> + Send + 'static,
    {
        let answerer: Answerer = Arc::new(move |question: &[u8]| -> AnswerFuture {
            let asked = codec::decode(question).map(&answer);
            let answered = async move { codec::encode(&asked?.await).map(Bytes::from) };
            answered.boxed()
        });
        self.0.answerer.get_or_init(|| answerer);
    }

    /// Asks the leader, on any node. All nodes must know the question: ask only above the feature
    /// level that brought it.
    ///
    /// # Errors
    /// When no leader answers in five seconds, or it has no function for answers.
    pub async fn ask_leader<Q: Serialize, A: DeserializeOwned>(
        &self,
        question: &Q,
    ) -> Result<A, StoreError> {
        self.ask_leader_within(ANSWER_TIMEOUT, question).await
    }

    /// As [`Self::ask_leader`], for a question whose answer the leader may have to wait for. Longer
    /// than [`PROPOSE_TIMEOUT`](crate::PROPOSE_TIMEOUT) a follower does not wait.
    ///
    /// # Errors
    /// When no leader answers within `limit`, or it has no function for answers.
    pub async fn ask_leader_within<Q: Serialize, A: DeserializeOwned>(
        &self,
        limit: Duration,
        question: &Q,
    ) -> Result<A, StoreError> {
        let unreadable = |error: StoreCodecError| StoreError::Fatal(error.to_string());
        let question = Bytes::from(codec::encode(question).map_err(unreadable)?);
        let deadline = Instant::now() + limit;
        loop {
            let asked = timeout_at(deadline, self.ask_once(&question)).await;
            match asked.unwrap_or(Err(StoreError::NoQuorum)) {
                Ok(answer) => return codec::decode(&answer).map_err(unreadable),
                Err(refused @ StoreError::NotLeader { .. }) => {
                    self.wait_for_leader(deadline, refused).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn ask_once(&self, question: &Bytes) -> Result<Bytes, StoreError> {
        self.running()?;
        if self.is_leader() {
            return self.answer_here(question).await;
        }
        let question = ForwardedRequest::Ask(question.clone());
        match self.forward(question).await? {
            ForwardedAnswer::Answered(answer) => Ok(answer),
            _ => Err(StoreError::unexpected_answer()),
        }
    }

    /// Answers a question of this node or of a follower, as the leader.
    pub(crate) async fn answer_here(&self, question: &[u8]) -> Result<Bytes, StoreError> {
        // Forwarded here by a follower that has not heard of the next leader. Sessions of this node
        // may be left from its own time.
        if !self.is_leader() {
            return Err(StoreError::NotLeader {
                leader: self.leader(),
            });
        }
        let Some(answerer) = self.0.answerer.get() else {
            let reason = "the leader answers no questions yet".to_owned();
            return Err(StoreError::Fatal(reason));
        };
        let answer = answerer(question).await;
        answer.map_err(|error| StoreError::Fatal(error.to_string()))
    }
}
