//! Commands about owners and leases.

mod end;
mod lease;
mod node;
mod owner;
mod transfer;

pub use end::*;
pub use lease::*;
pub use node::*;
pub use owner::*;
pub use transfer::*;
