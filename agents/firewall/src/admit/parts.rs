use ipnet::IpNet;

use super::names::shortened;
use super::problem::Fault;
use super::shapes::{IpBlock, PortSpec};
use crate::rule::{ProtocolMatch, prefixes, protocol_number};

/// A prefix without bits after its length.
pub(super) fn prefix(field: &str, text: &str) -> Result<IpNet, Fault> {
    let Ok(net) = text.parse::<IpNet>() else {
        let problem = format!("{:?} is not a prefix", shortened(text));
        return Err(Fault::new(
            field,
            &problem,
            "write it as 10.0.0.0/8 or fd00::/8",
        ));
    };
    if net.addr() != net.network() {
        let problem = format!("{net} has bits after its prefix length");
        let remedy = format!("write {}, or the address with its full length", net.trunc());
        return Err(Fault::new(field, &problem, &remedy));
    }
    Ok(net)
}

/// The addresses of blocks; every address if there are none.
pub(super) fn addresses(field: &str, blocks: &[IpBlock]) -> Result<Vec<IpNet>, Fault> {
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
                return Err(Fault::new(
                    &field,
                    &problem,
                    "remove it, or correct one of both",
                ));
            }
            excepted.push(except);
        }
        all.extend(prefixes::subtract(cidr, &excepted));
    }
    if all.is_empty() {
        let problem = "the exceptions leave no address";
        return Err(Fault::new(
            field,
            problem,
            "remove an exception, or the rule",
        ));
    }
    Ok(prefixes::merged(&all))
}

/// The protocols of ports; every packet if there are none.
pub(super) fn protocols(field: &str, ports: &[PortSpec]) -> Result<Vec<ProtocolMatch>, Fault> {
    if ports.is_empty() {
        return Ok(vec![ProtocolMatch::Any]);
    }
    let mut all = Vec::new();
    for (index, spec) in ports.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let protocol = spec.protocol.as_deref().unwrap_or("TCP");
        match protocol {
            "TCP" => all.push(port_match(&field, spec, protocol_number::TCP)?),
            "UDP" => all.push(port_match(&field, spec, protocol_number::UDP)?),
            "SCTP" => all.push(port_match(&field, spec, protocol_number::SCTP)?),
            "ICMP" => {
                all.push(icmp(&field, spec, protocol_number::ICMP)?);
                // A type of one family is another thing in the other.
                if spec.icmp_type.is_none() {
                    all.push(icmp(&field, spec, protocol_number::ICMP6)?);
                }
            }
            "ICMPv6" => all.push(icmp(&field, spec, protocol_number::ICMP6)?),
            other => {
                let problem = format!("{:?} is not a protocol", shortened(other));
                let remedy = "use TCP, UDP, SCTP, ICMP or ICMPv6";
                return Err(Fault::new(&format!("{field}.protocol"), &problem, remedy));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn port_match(field: &str, spec: &PortSpec, protocol: u8) -> Result<ProtocolMatch, Fault> {
    if spec.icmp_type.is_some() {
        let field = format!("{field}.icmpType");
        let remedy = "remove it, or use the protocol ICMP or ICMPv6";
        return Err(Fault::new(&field, "only ICMP has types", remedy));
    }
    let Some(first) = spec.port else {
        if spec.end_port.is_some() {
            let field = format!("{field}.endPort");
            return Err(Fault::new(&field, "a range has no beginning", "add `port`"));
        }
        return Ok(ProtocolMatch::Protocol(protocol));
    };
    let first = port(&format!("{field}.port"), first)?;
    let field = format!("{field}.endPort");
    let last = spec.end_port.map(|end| port(&field, end)).transpose()?;
    let last = last.unwrap_or(first);
    if last < first {
        let problem = format!("the range ends at {last}, before its beginning {first}");
        return Err(Fault::new(&field, &problem, "swap `port` and `endPort`"));
    }
    Ok(ProtocolMatch::Ports {
        protocol,
        first,
        last,
    })
}

fn port(field: &str, number: u32) -> Result<u16, Fault> {
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| {
            let problem = format!("{number} is not a port");
            Fault::new(field, &problem, "use a number from 1 to 65535")
        })
}

fn icmp(field: &str, spec: &PortSpec, protocol: u8) -> Result<ProtocolMatch, Fault> {
    if spec.port.is_some() || spec.end_port.is_some() {
        let field = format!("{field}.port");
        return Err(Fault::new(
            &field,
            "ICMP has no ports",
            "use `icmpType`, or remove it",
        ));
    }
    Ok(match spec.icmp_type {
        Some(kind) => ProtocolMatch::IcmpType { protocol, kind },
        None => ProtocolMatch::Protocol(protocol),
    })
}
