//! Networks, addresses, and numbers that have one owner at a time.

mod ip;
mod network;
mod pool;

pub use ip::*;
pub use network::*;
pub use pool::*;
