//! The command of an operator about the release of the site, while no rollout is under way.

use serde::{Deserialize, Serialize};

use crate::rollout::entity::RolloutKind;

/// See [`Op::ClearRelease`](crate::Op::ClearRelease).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearRelease {
    /// The agents.
    pub kind: RolloutKind,
}
