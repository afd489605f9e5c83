//! Commands about claims.

mod claim;
mod power;

pub use claim::*;
pub use power::*;
