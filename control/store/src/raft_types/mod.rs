//! The types that Raft is instantiated with. Raft sees opaque bytes: what a command means is the
//! state machine's business, and every node, the leader too, applies what was written to the log.

pub(crate) mod runtime;

use std::any::Any;
use std::fmt;

use bytes::Bytes;
use openraft::vote::RaftLeaderId;
use serde::{Deserialize, Serialize};

/// Raft for the control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TypeConfig;

impl openraft::RaftTypeConfig for TypeConfig {
    type D = CommandBatch;
    type R = Applied;
    type NodeId = u64;
    type Node = openraft::BasicNode;
    type Term = u64;
    /// The standard one, at most one leader a term: orders to hardware are fenced by
    /// (term, generation), which needs a term to name one leader.
    type LeaderId = openraft::impls::leader_id_std::LeaderId<u64, u64>;
    type Vote = openraft::impls::Vote<Self::LeaderId>;
    type Payload = openraft::EntryPayload<CommandBatch, u64, openraft::BasicNode>;
    type Entry = openraft::Entry<<Self::LeaderId as RaftLeaderId>::Committed, Self::Payload>;
    type AsyncRuntime = runtime::RaftRuntime;
    type Responder<T>
        = openraft::impls::OneshotResponder<Self, T>
    where
        T: Send + 'static;
    type Batch<T>
        = openraft::impls::InlineBatch<T>
    where
        T: Send + 'static;
    type ErrorSource = openraft::impls::BoxedErrorSource;
}

pub(crate) type Entry = openraft::alias::EntryOf<TypeConfig>;
pub(crate) type LogId = openraft::alias::LogIdOf<TypeConfig>;
pub(crate) type Vote = openraft::alias::VoteOf<TypeConfig>;
pub(crate) type StoredMembership = openraft::alias::StoredMembershipOf<TypeConfig>;
pub(crate) type SnapshotMeta = openraft::alias::SnapshotMetaOf<TypeConfig>;

/// The commands of one log entry, applied in order.
///
/// Commands that wait at the same time travel in one entry: one log record and one apply serve
/// all of them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommandBatch(pub(crate) Vec<Bytes>);

// Commands may hold sealed secrets, and Raft logs entries: neither form shows content.
impl fmt::Debug for CommandBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} commands)", self.0.len())
    }
}

impl fmt::Display for CommandBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} commands", self.0.len())
    }
}

/// What applying an entry gave, for the proposer on the same node only: never serialised.
///
/// Holds the results of the state machine in use, one for each command.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Applied {
    #[serde(skip)]
    pub(crate) results: Option<Box<dyn Any + Send + Sync>>,
}
