use std::net::Ipv4Addr;

use serde::Deserialize;

/// Relay of DHCP requests to the boot server (RFC 3046), with the port of each request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayConfig {
    /// Address of the boot server's relay listener.
    pub server: Ipv4Addr,
    /// An address of the provisioning subnet: the boot server gives addresses of that one
    /// (RFC 3527).
    pub link: Ipv4Addr,
    /// Own address, to which the boot server answers. `management_ip` if absent.
    #[serde(default)]
    pub address: Option<Ipv4Addr>,
    /// UDP port of both.
    #[serde(default = "default_relay_port")]
    pub port: u16,
}

fn default_relay_port() -> u16 {
    67
}
