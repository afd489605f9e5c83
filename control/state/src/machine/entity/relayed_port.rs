//! The word of a switch's DHCP relay on a card.

use proto_types::SwitchId;
use serde::{Deserialize, Serialize};

/// The port that a card asked for its lease at, as the relay of the switch says by option 82
/// (RFC 3046).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RelayedPort {
    /// The switch.
    pub switch: SwitchId,
    /// Its port.
    pub port: String,
}
