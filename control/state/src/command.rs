//! A command: what is wanted, by whom and when.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::audit::entity::AuditEntry;
use crate::op::Op;

/// A change to the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The feature level that brought the command. A node that does not know the level stops
    /// instead of skipping the command.
    pub version: u32,
    /// The proposer's time: the only time that `apply` knows.
    pub now: Timestamp,
    /// Login or SPIFFE id of who wants it; for records, not for authorisation.
    pub actor: String,
    /// What is wanted.
    pub op: Op,
    /// The call that wants it, where its record is to be kept with the change: all that is known
    /// before the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<AuditEntry>>,
    /// The trace that it belongs to: a `traceparent`. Orders that it makes carry it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Length of a trace's text; others are left out.
pub(crate) const TRACE_LEN: usize = 55;

impl Command {
    /// A command for what is wanted.
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

    /// The same as a part of a trace, a W3C `traceparent` of version 00.
    #[must_use]
    pub fn traced(self, trace: String) -> Self {
        Self {
            trace: Some(trace),
            ..self
        }
    }

    /// The same with the record of the call that wants it.
    #[must_use]
    pub fn called(self, call: AuditEntry) -> Self {
        Self {
            call: Some(Box::new(call)),
            ..self
        }
    }
}
