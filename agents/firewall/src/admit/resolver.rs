//! The DNS proxy, as the firewall's part asks for it.

use std::net::{IpAddr, SocketAddr};

use proto_firewall::Violation;
use proto_firewall::parts::shortened;
use serde::de::DeserializeOwned;
use serde_norway::Value;

use super::shapes::{decode, in_field};
use crate::config::FirewallSpec;
use crate::rule::NameResolver;

/// Port of DNS.
const PORT: u16 = 53;
/// Servers, and addresses to listen on, that are read.
const ADDRESSES_MAX: usize = 16;

/// Reads the fields of the DNS proxy. `None` if there is none.
pub(super) fn resolver(spec: &FirewallSpec) -> Result<Option<NameResolver>, Violation> {
    let Some(value) = &spec.dns_server_address else {
        if spec.dns_port.is_some() || !spec.dns_listen_addresses.is_empty() {
            let problem = "the DNS proxy has no server to ask";
            let remedy = "add it, or remove dnsPort and dnsListenAddresses";
            return Err(Violation::new("dnsServerAddress", problem, remedy));
        }
        return Ok(None);
    };
    let texts: Vec<String> = match value {
        Value::Sequence(_) => field("dnsServerAddress", value)?,
        _ => vec![field("dnsServerAddress", value)?],
    };
    let servers: Result<Vec<SocketAddr>, Violation> =
        texts.iter().map(|text| server(text)).collect();
    let servers = servers?;
    let port: u16 = match &spec.dns_port {
        Some(value) => field("dnsPort", value)?,
        None => PORT,
    };
    if port == 0 {
        return Err(Violation::new(
            "dnsPort",
            "0 is not a port",
            "use 1 to 65535",
        ));
    }
    let mut listen = Vec::new();
    for value in &spec.dns_listen_addresses {
        let text: String = field("dnsListenAddresses", value)?;
        listen.push(address("dnsListenAddresses", &text)?);
    }
    if servers.is_empty() || servers.len() > ADDRESSES_MAX || listen.len() > ADDRESSES_MAX {
        let problem = format!("there may be 1 to {ADDRESSES_MAX} addresses");
        return Err(Violation::new(
            "dnsServerAddress",
            &problem,
            "correct the list",
        ));
    }
    Ok(Some(NameResolver {
        servers,
        listen,
        port,
    }))
}

fn field<T: DeserializeOwned>(name: &str, value: &Value) -> Result<T, Violation> {
    decode(value).map_err(|violation| in_field(name, violation))
}

fn server(text: &str) -> Result<SocketAddr, Violation> {
    match text.parse::<SocketAddr>() {
        Ok(server) if server.port() > 0 && is_host(server.ip()) => Ok(server),
        _ => Ok(SocketAddr::new(address("dnsServerAddress", text)?, PORT)),
    }
}

fn address(field: &str, text: &str) -> Result<IpAddr, Violation> {
    let address = text.parse::<IpAddr>().ok();
    address.filter(|address| is_host(*address)).ok_or_else(|| {
        let problem = format!("{:?} is not an address", shortened(text));
        let remedy = "write it as 192.0.2.53, or 192.0.2.53:5353 with the port of a server";
        Violation::new(field, &problem, remedy)
    })
}

/// `true` if the address may be that of one host.
fn is_host(address: IpAddr) -> bool {
    !address.is_unspecified() && !address.is_multicast()
}
