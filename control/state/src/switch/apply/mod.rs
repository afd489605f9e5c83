//! Switches: what commands do to them.

pub(crate) mod replace;
pub(crate) mod switch;
