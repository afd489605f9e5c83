//! Switches whose traffic is moved away.

use std::collections::BTreeSet;

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// The drain of a switch: its traffic goes over the other switches of its machines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// Time of the command.
    pub at: Timestamp,
    /// Ports of bridged machines, which are down meanwhile: such a machine does not listen to BGP,
    /// and sends over the port until it loses its carrier. Another switch had each of these
    /// machines when the drain began.
    #[serde(default)]
    pub ports: BTreeSet<String>,
}
