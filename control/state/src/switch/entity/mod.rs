//! Switches, their ports, and what these hear.

mod bgp_session;
mod drain;
mod health;
mod neighbour;
mod placed_port;
mod port;
mod routing;
mod switch;

pub use bgp_session::*;
pub use drain::*;
pub use health::*;
pub use neighbour::*;
pub use placed_port::*;
pub use port::*;
pub use routing::*;
pub use switch::*;
