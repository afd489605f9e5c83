//! Commands: an operation with its time, its caller and its feature level.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::audit::entity::AuditEntry;
use crate::op::Op;

/// A change to the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The feature level that introduced the command. A node that does not know the level stops
    /// instead of skipping the command.
    pub version: u32,
    /// The proposer's time: the only time that `apply` knows.
    pub now: Timestamp,
    /// Login or SPIFFE id of the caller; for records, not for authorisation.
    pub actor: String,
    /// The operation.
    pub op: Op,
    /// The audit record of the call, without its result. `apply` appends it in the same
    /// transaction. `None` means that the change is not recorded with its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<AuditEntry>>,
    /// The trace of the command, a W3C `traceparent`. Orders that it creates carry the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Length of a `traceparent` of version 00, bytes. `apply` ignores a trace of another length.
pub(crate) const TRACE_LEN: usize = 55;

impl Command {
    /// A command at the feature level that its operation needs, without trace and audit record.
    pub fn new(now: Timestamp, actor: impl Into<String>, op: impl Into<Op>) -> Self {
        let op = op.into();
        Self {
            version: op.level(),
            now,
            actor: actor.into(),
            op,
            call: None,
            trace: None,
        }
    }

    /// The same command in a trace, a W3C `traceparent` of version 00.
    #[must_use]
    pub fn traced(self, trace: String) -> Self {
        Self {
            trace: Some(trace),
            ..self
        }
    }

    /// The same command with the audit record of its call.
    #[must_use]
    pub fn called(self, call: AuditEntry) -> Self {
        Self {
            call: Some(Box::new(call)),
            ..self
        }
    }
}
