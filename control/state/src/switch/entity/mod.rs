//! Switches, their ports, and what these hear.

mod neighbour;
mod switch;

pub use neighbour::*;
pub use switch::*;
