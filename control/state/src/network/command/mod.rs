//! Commands about networks and addresses.

mod child_network;
mod ip;
mod network;

pub use child_network::*;
pub use ip::*;
pub use network::*;
