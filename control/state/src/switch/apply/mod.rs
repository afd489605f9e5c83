//! Transitions of switches.

pub(crate) mod replace;
pub(crate) mod switch;
