//! Packets that the rules drop, or accept with a log: what the kernel reports about them.
//!
//! The rules write a line to the kernel's log, which the published programs read, and send the same
//! packet to the group [`crate::model::REPORT_GROUP`] of the kernel's packet log. [`DropReader`]
//! reads that, into a [`DropLog`] of bounded length, from which other processes ([`socket`]) and a
//! droptailer server ([`droptailer`]) get it. Nobody waits for anybody: who is too slow loses the
//! oldest records, and is told how many. The rate is limited by the rules themselves.

pub mod droptailer;
mod log;
mod reader;
mod record;
mod report;
pub mod socket;

pub use log::{DropEvent, DropLog, DropSubscription};
pub use reader::DropReader;
pub use record::DropRecord;
pub use report::PacketReport;
