//! Transitions of switches.

pub(crate) mod drain;
mod management_address;
pub(crate) mod replace;
pub(crate) mod switch;
