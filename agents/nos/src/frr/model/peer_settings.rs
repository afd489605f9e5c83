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

/// Intervals of a session, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Between two keep-alives.
    pub keepalive_secs: u16,
    /// Without a message until the session fails.
    pub hold_secs: u16,
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
