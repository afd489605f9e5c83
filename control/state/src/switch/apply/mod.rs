//! Transitions of switches.

pub(crate) mod drain;
pub(crate) mod replace;
pub(crate) mod switch;
