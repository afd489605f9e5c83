//! Addresses in a server's answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, RCODE, ResourceRecord};

use super::query::{DnsQuery, is_truncated};

/// Longest chain of aliases that is followed.
const ALIASES_MAX: usize = 10;

/// An address that a name was resolved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedAddress {
    /// The address.
    pub address: IpAddr,
    /// Time for which the answer is valid: the shortest in the chain of aliases to it.
    pub lifetime: Duration,
}

/// The addresses that an answer has for the name that was asked for: records of that name, or of the
/// alias that the answer itself leads it to. Records of other names count for nothing. Empty if the
/// answer is an error, was cut off, or is not understood.
#[must_use]
pub fn resolved_addresses(query: &DnsQuery, answer: &[u8]) -> Vec<ResolvedAddress> {
    let Some(is_ipv4) = query.asks_for_ipv4().filter(|_| !query.name().is_empty()) else {
        return Vec::new();
    };
    if is_truncated(answer) {
        return Vec::new();
    }
    let Ok(packet) = Packet::parse(answer) else {
        return Vec::new();
    };
    if packet.rcode() != RCODE::NoError {
        return Vec::new();
    }
    let mut name: Vec<Vec<u8>> = query
        .name()
        .split('.')
        .map(|label| label.as_bytes().to_vec())
        .collect();
    let mut ttl_max = u32::MAX;
    for _ in 0..=ALIASES_MAX {
        let own: Vec<&ResourceRecord<'_>> = packet
            .answers
            .iter()
            .filter(|record| record.class == CLASS::IN && labels(&record.name) == name)
            .collect();
        let found = addresses(&own, is_ipv4, ttl_max);
        if !found.is_empty() {
            return found;
        }
        let alias = own.iter().find_map(|record| match &record.rdata {
            RData::CNAME(target) => Some((labels(&target.0), ttl(record))),
            _ => None,
        });
        let Some((target, ttl)) = alias else {
            break;
        };
        ttl_max = ttl_max.min(ttl);
        name = target;
    }
    Vec::new()
}

fn addresses(records: &[&ResourceRecord<'_>], is_ipv4: bool, ttl_max: u32) -> Vec<ResolvedAddress> {
    let mut found = Vec::new();
    for record in records {
        let address = match &record.rdata {
            RData::A(a) if is_ipv4 => IpAddr::V4(Ipv4Addr::from(a.address)),
            RData::AAAA(aaaa) if !is_ipv4 => IpAddr::V6(Ipv6Addr::from(aaaa.address)),
            _ => continue,
        };
        let seconds = ttl(record).min(ttl_max);
        found.push(ResolvedAddress {
            address,
            lifetime: Duration::from_secs(u64::from(seconds)),
        });
    }
    found
}

/// The TTL of a record, seconds. One with the highest bit is 0 (RFC 2181, 8).
fn ttl(record: &ResourceRecord<'_>) -> u32 {
    i32::try_from(record.ttl).map_or(0, i32::cast_unsigned)
}

fn labels(name: &Name<'_>) -> Vec<Vec<u8>> {
    name.as_bytes().map(<[u8]>::to_ascii_lowercase).collect()
}
