//! BGP sessions of ports, as agents of the published stack report them.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// State of a port's BGP session, as agents of the published stack report it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BgpSession {
    /// Name of the peer. `None` means unknown.
    pub neighbour: Option<String>,
    /// Peer group.
    pub peer_group: String,
    /// VRF that the session is in.
    pub vrf: String,
    /// State of the session, a number of the public contract.
    pub state: i32,
    /// Time at which the session was established.
    pub established_at: Timestamp,
    /// Number of prefixes that were sent. A change of it alone is not written.
    pub sent_prefixes: u64,
    /// Number of prefixes that were accepted. A change of it alone is not written.
    pub accepted_prefixes: u64,
}

impl BgpSession {
    /// `true` if another report of the session differs in its counters at most: they change with
    /// every report, and are no reason to write one.
    pub fn is_like(&self, other: &Self) -> bool {
        let rest = |session: &Self| Self {
            sent_prefixes: 0,
            accepted_prefixes: 0,
            ..session.clone()
        };
        rest(self) == rest(other)
    }
}
