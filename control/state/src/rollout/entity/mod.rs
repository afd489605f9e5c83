//! Rollouts, and the plan that they follow.

mod agent;
mod plan;
mod rollout;

pub use agent::*;
pub use plan::*;
pub use rollout::*;
