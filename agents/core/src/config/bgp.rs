//! The BGP section of the configuration.

use std::net::SocketAddr;

use proto_types::IpNet;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// BGP of the switch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BgpConfig {
    /// AS number of the switch.
    pub asn: u32,
    /// Ports towards spines ("swp31"). They are not registered, because no machine is connected to
    /// them.
    #[serde(default)]
    pub spines: Vec<String>,
    /// Prefixes that hold the tunnel ends of all leaves. A firewall is told of these only; empty
    /// means of none.
    #[serde(default)]
    pub underlay: Vec<IpNet>,
    /// Listeners that firewalls may talk to through the underlay, by UDP and TCP: those of control for
    /// agents, name and time servers. Their prefixes have to be in `underlay` too.
    #[serde(default)]
    pub firewall_services: Vec<SocketAddr>,
    /// Prefixes of hosts from which firewalls are managed through the underlay: a firewall may answer
    /// their TCP connections, and open none.
    #[serde(default)]
    pub firewall_clients: Vec<IpNet>,
    /// FRR's shell with its first arguments, for FRR in a container, of another directory or of
    /// another path space. `None` means the host's on Linux, and that of the container `bgp` on
    /// SONiC. Never empty.
    #[serde(default, deserialize_with = "command")]
    pub vtysh: Option<Vec<String>>,
}

/// Reads a command, which has a program.
fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    if words.first().is_none_or(String::is_empty) {
        return Err(D::Error::custom("vtysh names no program"));
    }
    Ok(Some(words))
}
