//! The control nodes, and what holds for all of them.

mod clock;
mod component;
mod node;
mod policy;
mod settings;

pub use clock::*;
pub use component::*;
pub use node::*;
pub use policy::*;
pub use settings::*;
