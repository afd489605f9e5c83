//! The command that ends the hold of a restored state.

use serde::{Deserialize, Serialize};

/// See [`Op::ReconcileRestore`](crate::Op::ReconcileRestore).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReconcileRestore {
    /// `true` judges free machines that were not heard since, too; otherwise they are locked.
    #[serde(default)]
    pub judge_silent: bool,
}
