//! Switches, their ports, and what these hear.

mod neighbour;
mod port;
mod switch;

pub use neighbour::*;
pub use port::*;
pub use switch::*;
