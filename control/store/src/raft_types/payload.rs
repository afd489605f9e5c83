//! Content of log entries, and the results of applying them.

use std::any::Any;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The commands of one log entry, applied in order. Commands that wait at the same time share one
/// entry, and so one sync on each node.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommandBatch(pub(crate) Vec<Bytes>);

// openraft logs entries. Commands may contain sealed secrets, so neither form shows the content.
impl fmt::Debug for CommandBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandBatch({})", self.0.len())
    }
}

impl fmt::Display for CommandBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} commands", self.0.len())
    }
}

/// Results of an applied entry, for the proposer on the same node.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Applied {
    /// One result per command, of the state machine in use; `None` for an entry without commands.
    /// Never serialised: every node computes its own results.
    #[serde(skip)]
    pub(crate) results: Option<Box<dyn Any + Send + Sync>>,
}
