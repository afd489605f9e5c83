//! The networks that pixie serves, after the check of the configuration.

use pixie_boot::Network;
use serde::Deserialize;

/// One network and how it is served.
#[derive(Debug, Clone)]
pub struct NetworkConfig {
    pub interface: String,
    pub mode: Mode,
    /// `true` means send IPv6 router advertisements, which iPXE otherwise waits for.
    pub router_advertisements: bool,
    /// `true` if every client is behind the relay of a switch: what comes without one is refused.
    pub is_relayed: bool,
    pub network: Network,
}

/// The DHCP role of pixie on a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// As the DHCP server.
    Server,
    /// ProxyDHCP beside another DHCP server: boot information only.
    Proxy,
}
