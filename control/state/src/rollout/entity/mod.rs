//! Rollouts, and the plan that they follow.

mod plan;
mod rollout;

pub use plan::*;
pub use rollout::*;
