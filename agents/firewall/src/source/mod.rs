//! Sources of objects: what controllers feed into the rules, and where it comes from.
//!
//! Each source delivers the newest whole snapshot of its objects over a channel ([`SourceLink`]),
//! and hears which of them are in force ([`AppliedObjects`]). The agent keeps the last snapshot of
//! every source ([`CollectedObjects`]), and takes each controller's objects from its own one.
//!
//! Invariants:
//! - A source that fails, or goes away, changes nothing: its last snapshot stays.
//! - Until a source answers for the first time since boot, its last good snapshot is in force.
//! - Without the operator's objects nothing of a tenant is: the operator's limits are not known.
//! - A snapshot is whole: no list that is half read is delivered.

mod applied;
mod candidates;
mod channel;
mod collected;
pub mod kubernetes;
pub mod metal;
mod monitor;
mod objects;
mod set;
mod spec;

pub use applied::AppliedObjects;
pub use candidates::{CandidateQuestion, CandidateSender};
pub use channel::{SourceLink, SourceState};
pub use collected::{CollectedObjects, MissingSource};
pub use monitor::{MonitorCounter, MonitorReport, MonitorTraffic};
pub use objects::{ControllerObjects, SourceObjects};
pub use set::SourceSet;
