//! Commands about owners and leases.

mod end;
mod lease;
mod owner;
mod transfer;

pub use end::*;
pub use lease::*;
pub use owner::*;
pub use transfer::*;
