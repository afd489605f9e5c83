use std::net::Ipv4Addr;

use serde::Deserialize;

/// The `[relay]` section: the listener for the relays of switches.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayConfig {
    /// Interface towards the management addresses of the switches. A network of machines must not be
    /// behind it: a machine there could send with a switch's address.
    pub interface: String,
    /// Own address there, which the switches send to.
    pub address: Ipv4Addr,
}
