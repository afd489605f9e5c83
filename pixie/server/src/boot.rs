//! A boot of a machine, and its ticket.

use proto_types::{MacAddr, MachineId};
use serde::{Deserialize, Serialize};

/// A boot of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub machine: MachineId,
    pub mac: MacAddr,
    /// DHCP option 93.
    pub arch: u16,
    /// Time of the request, milliseconds since the epoch.
    pub seen_ms: u64,
    /// `true` if the machine was sent to its disk while control did not answer.
    #[serde(default)]
    pub to_disk: bool,
    /// Port of a switch that the card's lease was asked for at, as the switch's relay says. `None`
    /// means that no relay has said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relayed: Option<SwitchPort>,
}

/// A port of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPort {
    /// Id of the switch.
    pub switch: String,
    /// Name of the port.
    pub port: String,
}

/// A one-time boot ticket.
#[derive(Clone)]
pub struct Ticket {
    pub id: String,
    pub secret: Vec<u8>,
    /// Root certificates of control, DER.
    pub roots: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket")
            .field("id", &self.id)
            .field("secret", &"<redacted>")
            .finish()
    }
}
