//! Commands about nodes.

mod document;
mod node;

pub use document::*;
pub use node::*;
