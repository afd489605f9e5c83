//! Commands about networks and addresses.

mod ip;
mod network;

pub use ip::*;
pub use network::*;
