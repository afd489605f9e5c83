//! nftables over netlink: reads our table, and applies changes as one transaction.
//!
//! The messages are those of `linux/netfilter/nf_tables.h`. There is no crate for them that we may
//! use: see `docs/dependencies.md`.

mod applying;
mod attribute;
mod changes;
mod constants;
mod error;
mod expressions;
mod kernel;
mod message;
mod observe;
mod reading;
mod results;
mod socket;
mod timed;

pub use attribute::{Attribute, covers};
pub(crate) use attribute::{find, parse, text};
pub use error::NetlinkError;
pub use expressions::encode as encode_expressions;
pub use kernel::Kernel;
pub use results::{Applied, CounterValue};
pub use timed::TimedElement;
