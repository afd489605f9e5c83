//! Commands about the cluster itself.

mod clock;
mod component;
mod node;
mod node_join;
mod policy;
mod settings;

pub use clock::*;
pub use component::*;
pub use node::*;
pub use node_join::*;
pub use policy::*;
pub use settings::*;
