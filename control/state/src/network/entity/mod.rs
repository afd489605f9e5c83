//! Networks, addresses, and numbers that have one owner at a time.

mod family;
mod ip;
mod network;
mod pool;

pub use family::*;
pub use ip::*;
pub use network::*;
pub use pool::*;
