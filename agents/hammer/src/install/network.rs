//! The installed system's network: static addresses by systemd-networkd.
//!
//! The gateway has the same address in every segment, and is reached on the link whatever the
//! machine's own prefix is.

use std::net::IpAddr;

use ipnet::IpNet;
use proto_mesh::{Install, MachineNetwork};

/// IPv4 address of the exit router in every segment.
pub(super) const GATEWAY_V4: &str = "169.254.1.1";
/// IPv6 address of the exit router in every segment.
pub(super) const GATEWAY_V6: &str = "fe80::1";

/// An address or prefix of the order that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {text:?} is not an address or prefix")]
pub struct NetworkError {
    pub(super) field: String,
    pub(super) text: String,
}

/// The `.network` file for the interface with this MAC address.
///
/// # Errors
/// When an address or prefix of the order does not parse.
pub fn networkd_file(install: &Install, mac: &str) -> Result<String, NetworkError> {
    let mut out = String::from("[Match]\n");
    out.push_str(&format!("MACAddress={mac}\n"));
    // Only the card itself: VLANs and bonds on it inherit its MAC address and would match too.
    out.push_str("Kind=!*\n\n[Network]\n");
    let mut families = (false, false);
    let mut routes = Vec::new();
    for network in &install.networks {
        for ip in &network.ips {
            let (address, prefix) = with_prefix(network, ip)?;
            match address {
                IpAddr::V4(_) => families.0 = true,
                IpAddr::V6(_) => families.1 = true,
            }
            out.push_str(&format!("Address={address}/{prefix}\n"));
        }
        for destination in &network.destination_prefixes {
            routes.push(parse::<IpNet>(&named(network), destination)?);
        }
    }
    for server in &install.dns_servers {
        let server: IpAddr = parse("dns_servers", server)?;
        out.push_str(&format!("DNS={server}\n"));
    }
    // No router advertisements: control names every address and route, and a neighbour in the
    // segment must not add others. LLDP shows the switch which machine is on the port.
    out.push_str("LLDP=yes\nEmitLLDP=yes\nIPv6AcceptRA=no\nLinkLocalAddressing=ipv6\n");
    // The default route is set even if no network names it: without it nobody could reach the
    // machine, and it could not phone home.
    for (present, default, gateway) in [
        (families.0, "0.0.0.0/0", GATEWAY_V4),
        (families.1, "::/0", GATEWAY_V6),
    ] {
        if !present {
            continue;
        }
        let is_v4 = gateway == GATEWAY_V4;
        let own = routes
            .iter()
            // The default route is in the list already.
            .filter(|r| r.addr().is_ipv4() == is_v4 && r.prefix_len() > 0);
        let own: Vec<String> = own.map(ToString::to_string).collect();
        for destination in std::iter::once(default.to_string()).chain(own) {
            out.push_str(&format!(
                "\n[Route]\nDestination={destination}\nGateway={gateway}\nGatewayOnLink=yes\n"
            ));
        }
    }
    Ok(out)
}

/// The address, with the length of the network's prefix that contains it. Without such a prefix it
/// is a host address (/32 or /128).
pub(super) fn with_prefix(
    network: &MachineNetwork,
    ip: &str,
) -> Result<(IpAddr, u8), NetworkError> {
    let address: IpAddr = parse(&named(network), ip)?;
    for prefix in &network.prefixes {
        let prefix: IpNet = parse(&named(network), prefix)?;
        if prefix.contains(&address) {
            return Ok((address, prefix.prefix_len()));
        }
    }
    Ok((address, if address.is_ipv4() { 32 } else { 128 }))
}

/// Parses an address or prefix of the order. Only parsed values get into the file, so that no text
/// of the order can add lines to it.
pub(super) fn parse<T: std::str::FromStr>(field: &str, text: &str) -> Result<T, NetworkError> {
    let error = || NetworkError {
        field: field.to_string(),
        text: text.to_string(),
    };
    text.parse().map_err(|_| error())
}

/// The name of a network in errors.
pub(super) fn named(network: &MachineNetwork) -> String {
    format!("network {:?}", network.network)
}

/// The content of /etc/hosts.
#[must_use]
pub fn hosts(hostname: &str) -> String {
    format!(
        "127.0.0.1 localhost\n127.0.1.1 {hostname}\n\n\
         ::1 localhost ip6-localhost ip6-loopback\nff02::1 ip6-allnodes\nff02::2 ip6-allrouters\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(ips: &[&str], prefixes: &[&str], destinations: &[&str]) -> MachineNetwork {
        let strings = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        MachineNetwork {
            network: "n".into(),
            ips: strings(ips),
            prefixes: strings(prefixes),
            destination_prefixes: strings(destinations),
            ..MachineNetwork::default()
        }
    }

    #[test]
    fn both_families_with_the_gateway_on_the_link() {
        let install = Install {
            networks: vec![
                network(
                    &["10.1.0.5", "2001:db8::5"],
                    &["10.0.0.0/8", "2001:db8::/64"],
                    &["0.0.0.0/0"],
                ),
                network(&["192.0.2.9"], &["10.0.0.0/8"], &["192.0.2.0/24"]),
            ],
            dns_servers: vec!["9.9.9.9".into()],
            ..Install::default()
        };
        let want = "[Match]\nMACAddress=52:54:00:00:00:01\nKind=!*\n\n[Network]\n\
            Address=10.1.0.5/8\nAddress=2001:db8::5/64\nAddress=192.0.2.9/32\nDNS=9.9.9.9\n\
            LLDP=yes\nEmitLLDP=yes\nIPv6AcceptRA=no\nLinkLocalAddressing=ipv6\n\
            \n[Route]\nDestination=0.0.0.0/0\nGateway=169.254.1.1\nGatewayOnLink=yes\n\
            \n[Route]\nDestination=192.0.2.0/24\nGateway=169.254.1.1\nGatewayOnLink=yes\n\
            \n[Route]\nDestination=::/0\nGateway=fe80::1\nGatewayOnLink=yes\n";
        assert_eq!(networkd_file(&install, "52:54:00:00:00:01").unwrap(), want);
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        for bad in [
            network(&["10.0.0.1\nDNS=6.6.6.6"], &[], &[]),
            network(&["10.0.0.1"], &["10.0.0.0"], &[]),
            network(&["10.0.0.1"], &[], &["default"]),
        ] {
            let install = Install {
                networks: vec![bad],
                ..Install::default()
            };
            assert!(networkd_file(&install, "m").is_err());
        }
        let server = Install {
            dns_servers: vec!["9.9.9.9".into(), "9.9.9.9\nGateway=6.6.6.6".into()],
            ..Install::default()
        };
        let error = networkd_file(&server, "m").unwrap_err().to_string();
        assert!(error.starts_with("dns_servers: "), "{error}");
        assert!(networkd_file(&Install::default(), "m").is_ok());
    }
}
