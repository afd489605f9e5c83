//! The types that Raft is instantiated with.
//!
//! A command is opaque bytes to Raft; the state machine decodes it when the entry is applied. Every
//! node, the leader too, applies the bytes that were written to the log.

mod log_types;
mod payload;
pub(crate) mod runtime;
mod state_types;

use openraft::vote::RaftLeaderId;

pub(crate) use log_types::{Entry, LogId, Vote};
pub(crate) use payload::{Applied, CommandBatch};
pub(crate) use state_types::{SnapshotMeta, StoredMembership};

/// Parameters of Raft for the control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TypeConfig;

impl openraft::RaftTypeConfig for TypeConfig {
    type D = CommandBatch;
    type R = Applied;
    type NodeId = u64;
    type Node = openraft::BasicNode;
    type Term = u64;
    // At most one leader per term, as in the Raft paper. Orders to hardware are fenced by (term,
    // generation): with two leaders in a term, orders of both could be valid.
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
