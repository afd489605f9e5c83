//! Records of claims.

mod claim;
mod condition;
mod metadata;
mod note;
mod power;
mod queue;
mod selector;
mod spec;
mod state;
mod wishes;

pub use claim::*;
pub use condition::*;
pub use metadata::*;
pub use note::*;
pub use power::*;
pub use queue::*;
pub use selector::*;
pub use spec::*;
pub use state::*;
pub use wishes::*;
