//! Commands about machines.

mod allocate;
mod bmc;
mod bmc_order;
mod bmc_order_done;
mod bmc_report;
mod boot;
mod capability;
mod free;
mod install;
mod lifecycle;
mod machine;
mod register;
mod restored;
mod vpn;

pub use allocate::*;
pub use bmc::*;
pub use bmc_order::*;
pub use bmc_order_done::*;
pub use bmc_report::*;
pub use boot::*;
pub use capability::*;
pub use free::*;
pub use install::*;
pub use lifecycle::*;
pub use machine::*;
pub use register::*;
pub use restored::*;
pub use vpn::*;
