//! Questions about machines.

mod boot;
pub(crate) mod cables;
mod cabling;
mod lookup;
mod matching;
mod nonce;
mod offer;
mod orders;
mod ports;
mod reports;
mod restored;
mod unknown_machines;

pub use boot::*;
pub use cabling::*;
pub use lookup::*;
pub use matching::*;
pub use nonce::*;
pub use offer::*;
pub use orders::*;
pub use ports::*;
pub use reports::*;
pub use restored::*;
pub use unknown_machines::*;
