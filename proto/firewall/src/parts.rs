//! Parts of objects: names, prefixes, addresses, ports. Each function reads the text of a field, or
//! names the field, the problem and the remedy in a [`Violation`].

use std::net::IpAddr;

use ipnet::IpNet;

use crate::address_range::{AddressRange, every_address, merged_ranges};
use crate::protocol_match::number;
use crate::{AddressBlock, ENTRIES_MAX, PortSpec, ProtocolMatch, Violation, prefixes};

/// Longest name of an object, bytes: the limit of names in Kubernetes.
pub const NAME_LEN_MAX: usize = 63;
/// Longest name of an object in a set of a network, bytes: the rest is for a mark of the network,
/// which tells rules of one name in two sets apart.
pub(crate) const NETWORK_NAME_LEN_MAX: usize = NAME_LEN_MAX - crate::scope::MARK_LEN;

/// Longest name or pattern of the DNS, bytes. The kernel's names of sets, which contain it, are
/// shorter than the 253 of the DNS.
pub(crate) const DNS_NAME_LEN_MAX: usize = 240;
/// Longest label of a name of the DNS, bytes (RFC 1035).
const DNS_LABEL_LEN_MAX: usize = 63;
/// Exceptions that one block may have.
pub(crate) const EXCEPTIONS_MAX: usize = 256;
/// Largest rate limit, MiB/s: 4 GiB/s, the most that the kernel's burst can hold.
const RATE_MAX: u32 = 4095;

/// `true` if an object may have that name: at most `len_max` small letters, digits, `-` and `.`, first
/// and last a letter or a digit.
#[must_use]
pub fn is_name(text: &str, len_max: usize) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= len_max
        && text.starts_with(is_end)
        && text.ends_with(is_end)
        && text.chars().all(|c| is_end(c) || c == '-' || c == '.')
}

/// A name of at most `len_max` bytes.
///
/// # Errors
/// [`is_name`] is `false`.
pub fn name(field: &str, text: &str, len_max: usize) -> Result<String, Violation> {
    if is_name(text, len_max) {
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
///
/// # Errors
/// The text is no prefix, or has such bits, or zeros in front of a number: some read 010 as 8.
pub fn prefix(field: &str, text: &str) -> Result<IpNet, Violation> {
    let Some(net) = read_prefix(text) else {
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

/// Reads a prefix. The standard library refuses addresses that could be read in two ways.
fn read_prefix(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let bits: u8 = length.parse().ok()?;
    // Also without a sign.
    let is_plain = bits.to_string() == length;
    IpNet::new(address.parse().ok()?, bits)
        .ok()
        .filter(|_| is_plain)
}

/// An address.
///
/// # Errors
/// The text is none.
pub fn address(field: &str, text: &str) -> Result<IpAddr, Violation> {
    text.parse().map_err(|_| {
        let problem = format!("{:?} is not an address", shortened(text));
        Violation::new(field, problem, "write it as 203.0.113.7")
    })
}

/// The addresses of source NAT, at least one.
///
/// # Errors
/// There is none, or a text is no address.
pub fn nat_addresses(texts: &[String]) -> Result<Vec<IpAddr>, Violation> {
    if texts.is_empty() {
        let remedy = "add one, or remove the rule";
        return Err(Violation::new("ips", "there is no address", remedy));
    }
    texts.iter().map(|text| address("ips", text)).collect()
}

/// A rate limit, MiB/s.
///
/// # Errors
/// It is 0, or more than the kernel can hold.
pub fn rate(rate: u32) -> Result<u32, Violation> {
    if rate == 0 || rate > RATE_MAX {
        let problem = format!("{rate} is not a rate");
        return Err(Violation::new("rate", problem, "use 1 to 4095, in MiB/s"));
    }
    Ok(rate)
}

/// A name of the DNS in small letters and without a dot at the end, or with `has_stars` a pattern.
/// `None` if it is none.
#[must_use]
pub fn dns_name(text: &str, has_stars: bool) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || (has_stars && c == '*');
    let is_label =
        |label: &str| (1..=DNS_LABEL_LEN_MAX).contains(&label.len()) && label.chars().all(is_part);
    let is_valid = text.len() <= DNS_NAME_LEN_MAX && text.split('.').all(is_label);
    is_valid.then(|| text.to_ascii_lowercase())
}

/// The addresses of blocks, disjoint; every address if there are none.
///
/// # Errors
/// A prefix is wrong, an exception is outside of its prefix, no address is left, or the addresses
/// need more prefixes than a rule may have entries.
pub(crate) fn ranges(field: &str, blocks: &[AddressBlock]) -> Result<Vec<AddressRange>, Violation> {
    if blocks.is_empty() {
        return Ok(every_address());
    }
    let mut all = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        all.extend(block_ranges(&format!("{field}[{index}]"), block)?);
    }
    if all.is_empty() {
        let problem = "the exceptions leave no address";
        let remedy = "remove an exception, or the rule";
        return Err(Violation::new(field, problem, remedy));
    }
    few_prefixes(field, merged_ranges(all))
}

/// The addresses of a block that are not excepted.
fn block_ranges(field: &str, block: &AddressBlock) -> Result<Vec<AddressRange>, Violation> {
    let cidr = prefix(&format!("{field}.cidr"), &block.cidr)?;
    let field = format!("{field}.except");
    if block.except.len() > EXCEPTIONS_MAX {
        let problem = format!("there are {} exceptions", block.except.len());
        let remedy = format!("use at most {EXCEPTIONS_MAX} in a block");
        return Err(Violation::new(&field, problem, &remedy));
    }
    let mut excepted = Vec::with_capacity(block.except.len());
    for text in &block.except {
        let except = prefix(&field, text)?;
        if !prefixes::contains(&cidr, &except) {
            let problem = format!("{except} is not in {cidr}");
            let remedy = "remove it, or correct one of both";
            return Err(Violation::new(&field, problem, remedy));
        }
        excepted.push(except);
    }
    Ok(AddressRange::of(&cidr).without(&excepted))
}

/// Refuses addresses that need more prefixes than a rule may have entries, before one is made.
fn few_prefixes(field: &str, ranges: Vec<AddressRange>) -> Result<Vec<AddressRange>, Violation> {
    let count: usize = ranges.iter().map(|range| range.prefix_count()).sum();
    if count > ENTRIES_MAX {
        let problem = format!("it needs {count} prefixes; a field may have {ENTRIES_MAX}");
        let remedy = "use shorter prefixes, or fewer; each exception splits its prefix up to its own \
                      length";
        return Err(Violation::new(field, problem, remedy));
    }
    Ok(ranges)
}

/// Prefixes, merged.
///
/// # Errors
/// There are more than a rule may have entries.
pub(crate) fn merged(field: &str, named: &[IpNet]) -> Result<Vec<AddressRange>, Violation> {
    let ranges = named.iter().map(AddressRange::of).collect();
    few_prefixes(field, merged_ranges(ranges))
}

/// The protocols of ports, each once and sorted; every packet if there are none.
///
/// # Errors
/// A protocol, a port or a type of ICMP is wrong.
pub fn protocols(field: &str, ports: &[PortSpec]) -> Result<Vec<ProtocolMatch>, Violation> {
    if ports.is_empty() {
        return Ok(vec![ProtocolMatch::Any]);
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
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn ports_of(field: &str, spec: &PortSpec, protocol: u8) -> Result<ProtocolMatch, Violation> {
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
        return Ok(ProtocolMatch::Protocol(protocol));
    };
    let first = port(&format!("{field}.port"), first)?;
    let field = format!("{field}.endPort");
    let last = spec.end_port.map(|end| port(&field, end)).transpose()?;
    let last = last.unwrap_or(first);
    if last < first {
        let problem = format!("the range ends at {last}, before its beginning {first}");
        return Err(Violation::new(&field, problem, "swap `port` and `endPort`"));
    }
    Ok(ProtocolMatch::Ports {
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

fn icmp(field: &str, spec: &PortSpec, protocol: u8) -> Result<ProtocolMatch, Violation> {
    if spec.port.is_some() || spec.end_port.is_some() {
        let field = format!("{field}.port");
        let remedy = "use `icmpType`, or remove it";
        return Err(Violation::new(&field, "ICMP has no ports", remedy));
    }
    let Some(kind) = spec.icmp_type else {
        return Ok(ProtocolMatch::Protocol(protocol));
    };
    let kind = u8::try_from(kind).map_err(|_| {
        let problem = format!("{kind} is not a type of ICMP");
        Violation::new(&format!("{field}.icmpType"), problem, "use 0 to 255")
    })?;
    Ok(ProtocolMatch::IcmpType { protocol, kind })
}

/// The beginning of a text, for messages.
#[must_use]
pub fn shortened(text: &str) -> String {
    text.chars().take(NAME_LEN_MAX).collect()
}
