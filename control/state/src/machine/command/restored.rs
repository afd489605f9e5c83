//! The command that ends the hold of a restored state.

use serde::{Deserialize, Serialize};

/// See [`Op::ReconcileRestore`](crate::Op::ReconcileRestore).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReconcileRestore {
    /// `true` if machines that are not proven to be what the backup knows are judged like others.
    /// Otherwise they are locked, and their ports stay.
    #[serde(default)]
    pub judge_silent: bool,
}
