//! Requests that a follower forwards to the leader, and the leader's answers.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::membership::{ClusterView, MemberChange, MembershipError};

/// A write, read barrier or question that a follower forwards to the leader.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ForwardedRequest {
    /// An encoded command.
    Propose(Bytes),
    /// Asks for the read index: the entry that must be applied before a read.
    Barrier,
    /// A change of the membership.
    Members(MemberChange),
    /// Asks for the cluster as the leader sees it.
    View,
    /// An encoded question about what only the leader knows. Nodes below feature level 2 cannot
    /// decode it and break the channel.
    Ask(Bytes),
}

impl ForwardedRequest {
    /// `true` if the request may have changed something when its answer is lost, so that it must
    /// not be sent again blindly.
    pub(crate) fn has_effect(&self) -> bool {
        matches!(self, Self::Propose(_) | Self::Members(_))
    }
}

/// The leader's answer to a [`ForwardedRequest`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ForwardedAnswer {
    /// The command was applied.
    Applied {
        /// Entry that contains the command; 0 if it was rejected.
        index: u64,
        /// Its encoded reply, or its encoded rejection.
        result: Result<Bytes, Bytes>,
    },
    /// The read index: a read may be answered once this entry is applied.
    ReadAt(u64),
    /// Outcome of a change of the membership.
    Changed(Result<(), MembershipError>),
    /// The cluster as the leader sees it.
    View(ClusterView),
    /// The encoded answer to a question.
    Answered(Bytes),
    /// The request was not carried out, or its outcome is unknown.
    Failed(StoreError),
}

/// A request that waits to be forwarded, and the caller that waits for its answer.
pub(crate) struct PendingForward {
    pub(crate) what: ForwardedRequest,
    pub(crate) answer: oneshot::Sender<ForwardedAnswer>,
}

impl PendingForward {
    /// Answers with `error`; the request was not sent.
    pub(super) fn refuse(self, error: StoreError) {
        // The caller may have given up.
        drop(self.answer.send(ForwardedAnswer::Failed(error)));
    }
}
