//! The addresses of the node: those that it listens on, and those at which others reach it.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use crate::args::SetupCheck;
use crate::config::Config;
use crate::setup::finding::SetupFinding;

/// Longest wait for the addresses of a name.
const LOOKUP_MAX: Duration = Duration::from_secs(5);

/// A field of the configuration with an address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ListenField {
    name: &'static str,
    address: SocketAddr,
    is_udp: bool,
}

/// A name or address that the node announces, and its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AnnouncedAddress {
    field: &'static str,
    address: String,
    /// Addresses with a mark: `true` if an interface of this host has it. An error is the reason why
    /// there are none.
    found: Result<Vec<(IpAddr, bool)>, String>,
}

/// Binds what the node will listen on, and looks up what it announces.
pub(super) async fn check(config: &Config) -> Vec<SetupFinding> {
    let mut findings: Vec<_> = listen_fields(config)
        .into_iter()
        .map(|field| judge_listen(field, bind(field).err().as_ref()))
        .collect();
    if config.tls.is_none() && !config.api_listen.ip().is_loopback() {
        let found = format!(
            "{} without TLS: tokens cross the network readable",
            config.api_listen
        );
        findings.push(
            SetupFinding::ok(SetupCheck::Addresses, "api.listen", found)
                .warn("give api.tls_certificate and api.tls_key, or listen on loopback"),
        );
    }
    let mesh = config
        .mesh_addresses
        .iter()
        .map(|address| ("mesh.addresses", address));
    let peers = config
        .peers
        .iter()
        .map(|peers| ("peers.address", &peers.address));
    for (field, address) in mesh.chain(peers) {
        let announced = AnnouncedAddress {
            field,
            address: address.clone(),
            found: look_up(address).await,
        };
        findings.push(judge_announced(&announced));
    }
    findings
}

fn listen_fields(config: &Config) -> Vec<ListenField> {
    let tcp = |name, address| ListenField {
        name,
        address,
        is_udp: false,
    };
    let udp = |name, address| ListenField {
        name,
        address,
        is_udp: true,
    };
    let mut fields = vec![
        tcp("api.listen", config.api_listen),
        udp("mesh.listen", config.mesh_listen),
    ];
    fields.extend(
        config
            .peers
            .as_ref()
            .map(|peers| udp("peers.listen", peers.listen)),
    );
    fields.extend(
        config
            .metrics_listen
            .map(|address| tcp("metrics.listen", address)),
    );
    fields
}

/// Binds an address for a moment.
fn bind(field: ListenField) -> Result<(), Error> {
    if field.is_udp {
        UdpSocket::bind(field.address).map(drop)
    } else {
        TcpListener::bind(field.address).map(drop)
    }
}

fn judge_listen(field: ListenField, error: Option<&Error>) -> SetupFinding {
    let protocol = if field.is_udp { "UDP" } else { "TCP" };
    let (name, address) = (field.name, field.address);
    let finding = |found: String| {
        SetupFinding::ok(
            SetupCheck::Addresses,
            name,
            format!("{protocol} {address} {found}"),
        )
    };
    let Some(error) = error else {
        return finding("can be listened on".to_owned());
    };
    match error.kind() {
        ErrorKind::AddrInUse => finding("is in use by another program".to_owned()).fail(format!(
            "stop that program (ss -lpn 'sport = {}'), or choose another address",
            address.port()
        )),
        ErrorKind::AddrNotAvailable => finding("is of no interface of this host".to_owned())
            .fail("choose an address that `ip address` shows, or 0.0.0.0 for all"),
        ErrorKind::PermissionDenied => finding("needs a right that this user lacks".to_owned())
            .fail("choose a port above 1023"),
        _ => finding(format!("cannot be listened on: {error}")).fail("choose another address"),
    }
}

/// The addresses of `HOST:PORT`.
async fn look_up(address: &str) -> Result<Vec<(IpAddr, bool)>, String> {
    let found = tokio::time::timeout(LOOKUP_MAX, tokio::net::lookup_host(address)).await;
    let found = found
        .map_err(|_| format!("no name server answered within {} s", LOOKUP_MAX.as_secs()))?
        .map_err(|error| error.to_string())?;
    // The same address comes once for each kind of socket.
    let mut all: Vec<IpAddr> = found.map(|one| one.ip()).collect();
    all.sort_unstable();
    all.dedup();
    // Only an address of an interface can be bound; port 0 is always free.
    let is_own = |ip: &IpAddr| UdpSocket::bind((*ip, 0)).is_ok();
    Ok(all.into_iter().map(|ip| (ip, is_own(&ip))).collect())
}

fn judge_announced(announced: &AnnouncedAddress) -> SetupFinding {
    let (field, address) = (announced.field, &announced.address);
    let finding = |found: String| {
        SetupFinding::ok(SetupCheck::Addresses, field, format!("{address} {found}"))
    };
    let found = match &announced.found {
        Ok(found) => found,
        Err(error) => {
            return finding(format!("has no address here: {error}"))
                .warn("enter the name in DNS or in /etc/hosts of all hosts that use it");
        }
    };
    let ips: Vec<String> = found.iter().map(|(ip, _)| ip.to_string()).collect();
    let ips = ips.join(", ");
    if found.iter().all(|(ip, _)| ip.is_loopback()) {
        return finding(format!("is loopback ({ips}), which no other host reaches"))
            .warn("announce a name or address of this host's network, unless all nodes are here");
    }
    if found.iter().any(|(_, is_own)| *is_own) {
        return finding(format!("is this host ({ips})"));
    }
    finding(format!("is {ips}, which no interface of this host has"))
        .warn("correct it, unless a router or a load balancer leads there")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::finding::FindingGrade;

    #[test]
    fn listeners_are_judged_by_their_errors() {
        let field = ListenField {
            name: "api.listen",
            address: "192.0.2.1:4443".parse().unwrap(),
            is_udp: false,
        };
        for (kind, said) in [
            (ErrorKind::AddrInUse, "is in use by another program"),
            (ErrorKind::AddrNotAvailable, "no interface of this host"),
            (ErrorKind::PermissionDenied, "a right that this user lacks"),
            (ErrorKind::Other, "cannot be listened on"),
        ] {
            let judged = judge_listen(field, Some(&Error::from(kind)));
            assert_eq!(judged.grade, FindingGrade::Fail);
            assert_eq!(judged.object, "api.listen");
            assert!(judged.found.contains("TCP 192.0.2.1:4443"), "{judged:?}");
            assert!(
                judged.found.contains(said) && !judged.remedy.is_empty(),
                "{judged:?}"
            );
        }
        assert_eq!(judge_listen(field, None).grade, FindingGrade::Ok);
    }

    #[test]
    fn an_address_in_use_is_found_and_a_free_one_is_not_kept() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let field = ListenField {
            name: "api.listen",
            address: taken.local_addr().unwrap(),
            is_udp: false,
        };
        assert_eq!(bind(field).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(taken);
        bind(field).unwrap();
        bind(field).unwrap();
    }

    #[test]
    fn announced_addresses_are_judged() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (found, grade, said) in [
            (
                Ok(vec![(ip("192.0.2.2"), true)]),
                FindingGrade::Ok,
                "is this host",
            ),
            (
                Ok(vec![(ip("192.0.2.9"), false), (ip("192.0.2.2"), true)]),
                FindingGrade::Ok,
                "is this host",
            ),
            (
                Ok(vec![(ip("192.0.2.9"), false)]),
                FindingGrade::Warn,
                "no interface",
            ),
            (
                Ok(vec![(ip("127.0.0.1"), true)]),
                FindingGrade::Warn,
                "loopback",
            ),
            (
                Err("no such host".to_owned()),
                FindingGrade::Warn,
                "no such host",
            ),
        ] {
            let judged = judge_announced(&AnnouncedAddress {
                field: "peers.address",
                address: "control-1.example:4444".to_owned(),
                found,
            });
            assert_eq!(judged.grade, grade, "{judged:?}");
            assert!(judged.found.contains(said), "{judged:?}");
        }
    }
}
