//! The BGP section of the configuration.

use std::collections::BTreeSet;
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
    /// Listeners that firewalls may talk to through the underlay, by UDP and TCP, beside those of control:
    /// name and time servers, servers of releases, and control where firewalls know it by other
    /// addresses than the leaf. Their prefixes have to be in `underlay` too.
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

impl BgpConfig {
    /// The listeners that firewalls may talk to: the configured ones, and those of `control` that are in
    /// the underlay. Others, such as those in a management network, are reached by the leaf alone.
    #[must_use]
    pub fn services(&self, control: &[SocketAddr]) -> BTreeSet<SocketAddr> {
        let is_underlay = |listener: &&SocketAddr| {
            let mut prefixes = self.underlay.iter();
            prefixes.any(|prefix| prefix.contains(&listener.ip()))
        };
        let control = control.iter().filter(is_underlay);
        self.firewall_services
            .iter()
            .chain(control)
            .copied()
            .collect()
    }
}

/// Reads a command, which has a program.
fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    if words.first().is_none_or(String::is_empty) {
        return Err(D::Error::custom("vtysh names no program"));
    }
    Ok(Some(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn control_is_a_service_where_it_is_in_the_underlay() {
        let cases: [(&[&str], &[&str], &[&str]); 6] = [
            (&[], &[], &[]),
            (&[], &["10.1.0.2:4443"], &["10.1.0.2:4443"]),
            (&[], &["[fd00::2]:4443"], &["[fd00::2]:4443"]),
            // The management network is not for firewalls.
            (&[], &["192.0.2.2:4443", "127.0.0.1:4443"], &[]),
            // The site's list is an addition, and may name what the leaf has too.
            (
                &["10.1.0.53:53"],
                &["10.1.0.2:4443", "192.0.2.2:4443"],
                &["10.1.0.2:4443", "10.1.0.53:53"],
            ),
            (&["10.1.0.2:4443"], &["10.1.0.2:4443"], &["10.1.0.2:4443"]),
        ];
        for (configured, control, wanted) in cases {
            let bgp = BgpConfig {
                underlay: vec!["10.1.0.0/24".parse().unwrap(), "fd00::/64".parse().unwrap()],
                firewall_services: sockets(configured),
                ..BgpConfig::default()
            };
            let found = bgp.services(&sockets(control));
            let wanted: BTreeSet<SocketAddr> = sockets(wanted).into_iter().collect();
            assert_eq!(found, wanted, "{configured:?} {control:?}");
        }
        let none = BgpConfig::default().services(&sockets(&["10.1.0.2:4443"]));
        assert!(none.is_empty(), "without an underlay nothing is in it");
    }
}
