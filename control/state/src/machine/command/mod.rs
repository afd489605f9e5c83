//! Commands about machines.

mod allocate;
mod bmc;
mod boot;
mod lifecycle;
mod machine;
mod restored;
mod vpn;

pub use allocate::*;
pub use bmc::*;
pub use boot::*;
pub use lifecycle::*;
pub use machine::*;
pub use restored::*;
pub use vpn::*;
