//! A command on its way to the proposer, and its outcome.

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::error::ProposeError;
use crate::machine::StateMachine;

/// The reply to a command that was applied.
pub(crate) struct AppliedCommand<M: StateMachine> {
    pub(crate) reply: M::Reply,
    /// Index of the log entry that contains the command.
    pub(crate) index: u64,
}

/// Outcome of one proposal.
pub(crate) type ProposalResult<M> =
    Result<AppliedCommand<M>, ProposeError<<M as StateMachine>::Rejection>>;

/// One encoded command, and the caller that waits for its outcome.
pub(crate) struct Proposal<M: StateMachine> {
    pub(crate) command: Bytes,
    pub(crate) answer: oneshot::Sender<ProposalResult<M>>,
}
