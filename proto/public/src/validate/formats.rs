//! Text formats, as protovalidate defines them. Pure functions of the text.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Eight, four, four, four and twelve hexadecimal digits.
pub(super) fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Six pairs of hexadecimal digits with colons between.
pub(super) fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 17
        && bytes.iter().enumerate().all(|(i, b)| match i % 3 {
            2 => *b == b':',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Whole groups of four with at most two `=` at the end.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len() - digits.len() <= 2
        && text.chars().count().is_multiple_of(4)
        && digits
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

/// An address of either family; IPv6 may carry a zone.
pub(super) fn is_ip(text: &str) -> bool {
    is_ipv4(text) || is_ipv6(text)
}

fn is_ipv4(text: &str) -> bool {
    Ipv4Addr::from_str(text).is_ok()
}

fn is_ipv6(text: &str) -> bool {
    match text.split_once('%') {
        Some((address, zone)) => !zone.is_empty() && Ipv6Addr::from_str(address).is_ok(),
        None => Ipv6Addr::from_str(text).is_ok(),
    }
}

/// `10.0.0.1/8` or `fd00::/64`; bits below the length may be set.
pub(super) fn is_prefix(text: &str) -> bool {
    prefix(text).is_some()
}

/// The same, with no bit set below the length.
pub(super) fn is_network(text: &str) -> bool {
    prefix(text).is_some_and(|(bits, width, length)| {
        let host = u32::from(width - length);
        bits.checked_shr(host)
            .unwrap_or(0)
            .checked_shl(host)
            .unwrap_or(0)
            == bits
    })
}

/// Address as a number, width of its family and prefix length.
fn prefix(text: &str) -> Option<(u128, u8, u8)> {
    let (address, length) = text.split_once('/')?;
    let (bits, width) = match Ipv4Addr::from_str(address) {
        Ok(v4) => (u128::from(u32::from(v4)), 32),
        Err(_) => (u128::from(Ipv6Addr::from_str(address).ok()?), 128),
    };
    let length = u8::try_from(number(length, 3)?).ok()?;
    (length <= width).then_some((bits, width, length))
}

/// Decimal digits without superfluous zeros, at most `digits_max` of them.
fn number(text: &str, digits_max: usize) -> Option<u32> {
    let plain = !text.is_empty()
        && text.len() <= digits_max
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten()
}

/// Labels of letters, digits and inner hyphens; the last one is not a number.
pub(super) fn is_hostname(text: &str) -> bool {
    if text.len() > 253 {
        return false;
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    let last = text.rsplit('.').next().unwrap_or_default();
    text.split('.').all(is_label) && !last.bytes().all(|b| b.is_ascii_digit())
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// A host name or an address.
pub(super) fn is_ip_or_hostname(text: &str) -> bool {
    is_ip(text) || is_hostname(text)
}

/// Host and port, `[v6]:port` for IPv6.
pub(super) fn is_host_and_port(text: &str) -> bool {
    host_port(text, true)
}

/// Host with or without a port.
pub(super) fn is_host_maybe_port(text: &str) -> bool {
    host_port(text, false)
}

fn host_port(text: &str, port_required: bool) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, after)) = rest.rsplit_once(']') else {
            return false;
        };
        return is_ipv6(address)
            && match after.strip_prefix(':') {
                Some(port) => is_port(port),
                None => after.is_empty() && !port_required,
            };
    }
    let is_host = |host: &str| is_ipv4(host) || is_hostname(host);
    match text.rsplit_once(':') {
        Some((host, port)) => is_host(host) && is_port(port),
        None => !port_required && is_host(text),
    }
}

fn is_port(text: &str) -> bool {
    number(text, 5).is_some_and(|port| port <= u32::from(u16::MAX))
}

/// An address as HTML forms accept it.
pub(super) fn is_email(text: &str) -> bool {
    const MARKS: &[u8] = b".!#$%&'*+/=?^_`{|}~-";
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    !local.is_empty()
        && local
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || MARKS.contains(&b))
        && domain.split('.').all(is_label)
}

/// No white space at either end.
pub(super) fn is_trimmed(text: &str) -> bool {
    text.trim().len() == text.len()
}

/// `*` or a uuid.
pub(super) fn is_star_or_uuid(text: &str) -> bool {
    text == "*" || is_uuid(text)
}

/// Code points, as protovalidate counts length.
pub(super) fn length(text: &str) -> u64 {
    text.chars().count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        type Format = fn(&str) -> bool;
        let cases: &[(&str, Format, &[&str], &[&str])] = &[
            (
                "prefix",
                is_prefix,
                &["10.1.2.3/8", "::/0"],
                &["10.0.0.0", "1.1.1.1/33", "::%a/1"],
            ),
            (
                "network",
                is_network,
                &["10.0.0.0/8", "0.0.0.0/0"],
                &["10.1.0.0/8", "::1/0"],
            ),
            (
                "prefix length",
                is_prefix,
                &["::/128"],
                &["::/0128", "::/+1", "::/", "::/129"],
            ),
            (
                "hostname",
                is_hostname,
                &["a", "a-b.c.", "1a"],
                &["", "a..b", "-a", "a.1", "a_b"],
            ),
            (
                "hp",
                is_host_and_port,
                &["a:1", "[::1]:0", "1.2.3.4:65535"],
                &["a", "::1", "a:01"],
            ),
            (
                "h",
                is_host_maybe_port,
                &["a", "[::1]", "1.2.3.4"],
                &["", "[::1", "a:65536", "::1"],
            ),
            (
                "email",
                is_email,
                &["a@b", "a.b+c@d.ef"],
                &["a", "@b", "a@", "a@b.", "a@b@c"],
            ),
            (
                "mac",
                is_mac,
                &["00:aa:Bb:cc:dd:ee"],
                &["00-aa-bb-cc-dd-ee", "00:aa"],
            ),
            (
                "base64",
                is_base64,
                &["", "YQ==", "YWI="],
                &["YQ", "Y===", "=YQ=", "é==="],
            ),
            (
                "ip",
                is_ip,
                &["::1%eth0", "1.2.3.4"],
                &["01.2.3.4", "::1%", "1.2.3"],
            ),
            ("star", is_star_or_uuid, &["*"], &["", "**"]),
        ];
        for (name, check, good, bad) in cases {
            for text in *good {
                assert!(check(text), "{name}: {text:?} should do");
            }
            for text in *bad {
                assert!(!check(text), "{name}: {text:?} should not do");
            }
        }
    }
}
