//! Names, prefixes, ports.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{AddressBlock, PortSpec, ProtocolPorts, Violation, prefixes};

/// Longest name of an object, bytes: the limit of names in Kubernetes.
pub const NAME_LEN_MAX: usize = 63;
/// Longest name of an object in a set of a network, bytes: the rest is for a mark of the network,
/// which tells rules of one name in two sets apart.
pub(super) const NETWORK_NAME_LEN_MAX: usize = NAME_LEN_MAX - crate::scope::MARK_LEN;

/// Numbers of IP protocols.
pub(crate) mod number {
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const ICMP6: u8 = 58;
    pub(crate) const SCTP: u8 = 132;
}

/// A name of at most `len_max` bytes.
pub(super) fn name(field: &str, text: &str, len_max: usize) -> Result<String, Violation> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_valid = text.len() <= len_max
        && text.starts_with(is_end)
        && text.ends_with(is_end)
        && text.chars().all(is_inner);
    if is_valid {
        return Ok(text.to_owned());
    }
    let problem = format!("{:?} is not a name", shortened(text));
    let remedy = format!(
        "use at most {len_max} small letters, digits, `-` and `.`, and a letter or digit at both \
         ends"
    );
    Err(Violation::new(field, problem, &remedy))
}

/// A prefix without bits after its length.
pub(super) fn prefix(field: &str, text: &str) -> Result<IpNet, Violation> {
    let Ok(net) = text.parse::<IpNet>() else {
        let problem = format!("{:?} is not a prefix", shortened(text));
        let remedy = "write it as 10.0.0.0/8 or fd00::/8";
        return Err(Violation::new(field, problem, remedy));
    };
    if net.addr() != net.network() {
        let problem = format!("{net} has bits after its prefix length");
        let remedy = format!("write {}, or the address with its full length", net.trunc());
        return Err(Violation::new(field, problem, &remedy));
    }
    Ok(net)
}

/// An address.
pub(super) fn address(field: &str, text: &str) -> Result<IpAddr, Violation> {
    text.parse().map_err(|_| {
        let problem = format!("{:?} is not an address", shortened(text));
        Violation::new(field, problem, "write it as 203.0.113.7")
    })
}

/// The addresses of blocks, disjoint; every address if there are none.
pub(super) fn addresses(field: &str, blocks: &[AddressBlock]) -> Result<Vec<IpNet>, Violation> {
    if blocks.is_empty() {
        return Ok(prefixes::any());
    }
    let mut all = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let cidr = prefix(&format!("{field}.cidr"), &block.cidr)?;
        let mut excepted = Vec::new();
        for text in &block.except {
            let field = format!("{field}.except");
            let except = prefix(&field, text)?;
            if !prefixes::contains(&cidr, &except) {
                let problem = format!("{except} is not in {cidr}");
                let remedy = "remove it, or correct one of both";
                return Err(Violation::new(&field, problem, remedy));
            }
            excepted.push(except);
        }
        all.extend(prefixes::subtract(cidr, &excepted));
    }
    if all.is_empty() {
        let problem = "the exceptions leave no address";
        let remedy = "remove an exception, or the rule";
        return Err(Violation::new(field, problem, remedy));
    }
    Ok(prefixes::merged(&all))
}

/// The protocols of ports; every packet if there are none.
pub(super) fn protocols(field: &str, ports: &[PortSpec]) -> Result<Vec<ProtocolPorts>, Violation> {
    if ports.is_empty() {
        return Ok(vec![ProtocolPorts::Any]);
    }
    let mut all = Vec::new();
    for (index, spec) in ports.iter().enumerate() {
        let field = format!("{field}[{index}]");
        match spec.protocol.as_deref().unwrap_or("TCP") {
            "TCP" => all.push(ports_of(&field, spec, number::TCP)?),
            "UDP" => all.push(ports_of(&field, spec, number::UDP)?),
            "SCTP" => all.push(ports_of(&field, spec, number::SCTP)?),
            "ICMP" => {
                all.push(icmp(&field, spec, number::ICMP)?);
                // A type of one family is another thing in the other.
                if spec.icmp_type.is_none() {
                    all.push(icmp(&field, spec, number::ICMP6)?);
                }
            }
            "ICMPv6" => all.push(icmp(&field, spec, number::ICMP6)?),
            other => {
                let problem = format!("{:?} is not a protocol", shortened(other));
                let remedy = "use TCP, UDP, SCTP, ICMP or ICMPv6";
                return Err(Violation::new(
                    &format!("{field}.protocol"),
                    problem,
                    remedy,
                ));
            }
        }
    }
    Ok(all)
}

fn ports_of(field: &str, spec: &PortSpec, protocol: u8) -> Result<ProtocolPorts, Violation> {
    if spec.icmp_type.is_some() {
        let field = format!("{field}.icmpType");
        let remedy = "remove it, or use the protocol ICMP or ICMPv6";
        return Err(Violation::new(&field, "only ICMP has types", remedy));
    }
    let Some(first) = spec.port else {
        if spec.end_port.is_some() {
            let field = format!("{field}.endPort");
            return Err(Violation::new(
                &field,
                "a range has no beginning",
                "add `port`",
            ));
        }
        return Ok(ProtocolPorts::Protocol(protocol));
    };
    let first = port(&format!("{field}.port"), first)?;
    let field = format!("{field}.endPort");
    let last = spec.end_port.map(|end| port(&field, end)).transpose()?;
    let last = last.unwrap_or(first);
    if last < first {
        let problem = format!("the range ends at {last}, before its beginning {first}");
        return Err(Violation::new(&field, problem, "swap `port` and `endPort`"));
    }
    Ok(ProtocolPorts::Ports {
        protocol,
        first,
        last,
    })
}

fn port(field: &str, number: u32) -> Result<u16, Violation> {
    let port = u16::try_from(number).ok().filter(|port| *port > 0);
    port.ok_or_else(|| {
        let problem = format!("{number} is not a port");
        Violation::new(field, problem, "use a number from 1 to 65535")
    })
}

fn icmp(field: &str, spec: &PortSpec, protocol: u8) -> Result<ProtocolPorts, Violation> {
    if spec.port.is_some() || spec.end_port.is_some() {
        let field = format!("{field}.port");
        let remedy = "use `icmpType`, or remove it";
        return Err(Violation::new(&field, "ICMP has no ports", remedy));
    }
    let Some(kind) = spec.icmp_type else {
        return Ok(ProtocolPorts::Protocol(protocol));
    };
    let kind = u8::try_from(kind).map_err(|_| {
        let problem = format!("{kind} is not a type of ICMP");
        Violation::new(&format!("{field}.icmpType"), problem, "use 0 to 255")
    })?;
    Ok(ProtocolPorts::Ports {
        protocol,
        first: kind.into(),
        last: kind.into(),
    })
}

/// The beginning of a text, for messages.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(NAME_LEN_MAX).collect()
}
