//! Settings that peer groups and neighbours both have.

use super::family::PerFamily;
use super::name::ObjectName;
use super::text::Description;

/// Settings of a peer group or a neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerSettings {
    /// Description, for operators.
    pub description: Option<Description>,
    /// Intervals of this session. `None` means FRR's.
    pub timers: Option<Timers>,
    /// `true` if the session is held down.
    pub shutdown: bool,
    /// `true` if BFD watches the session; needs FRR's bfdd.
    pub bfd: bool,
    /// Settings by address family.
    pub families: PerFamily<PeerFamily>,
}

/// Intervals of a session: between two keep-alives, and without a message until it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    keepalive_secs: u16,
    hold_secs: u16,
}

impl Timers {
    /// Checks the intervals, in seconds. `None` if the second is 1 or 2, or less than three times
    /// the first, which FRR would shorten (RFC 4271 §4.2, §4.4).
    #[must_use]
    pub fn new(keepalive_secs: u16, hold_secs: u16) -> Option<Self> {
        let ok = !matches!(hold_secs, 1 | 2) && keepalive_secs <= hold_secs / 3;
        ok.then_some(Self {
            keepalive_secs,
            hold_secs,
        })
    }

    pub(crate) fn line(self) -> String {
        format!("timers {} {}", self.keepalive_secs, self.hold_secs)
    }
}

/// Settings of a peer in one address family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerFamily {
    /// `true` if the peers exchange routes of this family.
    pub activate: bool,
    /// Times that our own AS may be in a received path, 1 to 10. `None` means never.
    pub allowas_in: Option<u8>,
    /// Largest number of received prefixes, from 1: more end the session.
    pub maximum_prefix: Option<u32>,
    /// Filter of received routes.
    pub route_map_in: Option<ObjectName>,
    /// Filter of sent routes.
    pub route_map_out: Option<ObjectName>,
}
