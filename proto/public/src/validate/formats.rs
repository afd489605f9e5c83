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

/// An absolute URI of RFC 3986.
pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let (rest, fragment) = cut(rest, '#');
    let (hierarchy, query) = cut(rest, '?');
    let extra = |part: Option<&str>| part.is_none_or(|p| uri_chars(p, b"/?:@"));
    is_scheme(scheme) && is_hierarchy(hierarchy) && extra(query) && extra(fragment)
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at)
        .map_or((text, None), |(before, after)| (before, Some(after)))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

fn is_hierarchy(text: &str) -> bool {
    match text.strip_prefix("//") {
        Some(rest) => {
            let path = rest.find('/').unwrap_or(rest.len());
            is_authority(&rest[..path]) && uri_chars(&rest[path..], b"/:@")
        }
        None => uri_chars(text, b"/:@"),
    }
}

fn is_authority(text: &str) -> bool {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    user.is_none_or(|u| uri_chars(u, b":")) && is_uri_host(host)
}

fn is_uri_host(text: &str) -> bool {
    let is_port = |p: &str| p.bytes().all(|b| b.is_ascii_digit());
    if let Some(rest) = text.strip_prefix('[') {
        let Some((literal, after)) = rest.rsplit_once(']') else {
            return false;
        };
        let port = after.is_empty() || after.strip_prefix(':').is_some_and(is_port);
        return port && is_ip_literal(literal);
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    port.is_none_or(is_port) && uri_chars(host, b"") && percent_utf8(host)
}

fn is_ip_literal(text: &str) -> bool {
    if let Some(future) = text.strip_prefix('v') {
        return future.split_once('.').is_some_and(|(version, rest)| {
            !version.is_empty()
                && version.bytes().all(|b| b.is_ascii_hexdigit())
                && !rest.is_empty()
                && !rest.contains('%')
                && uri_chars(rest, b":")
        });
    }
    match text.split_once("%25") {
        Some((address, zone)) => {
            let zone_chars = zone.bytes().all(|b| is_unreserved(b) || b == b'%');
            let zone_ok = !zone.is_empty() && zone_chars && uri_chars(zone, b"");
            Ipv6Addr::from_str(address).is_ok() && zone_ok && percent_utf8(zone)
        }
        None => Ipv6Addr::from_str(text).is_ok(),
    }
}

fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~".contains(&b)
}

/// Unreserved characters, sub-delimiters, percent escapes and `more`.
fn uri_chars(text: &str, more: &[u8]) -> bool {
    const SUB_DELIMITERS: &[u8] = b"!$&'()*+,;=";
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(b) = bytes.get(at) {
        if *b == b'%' {
            let digits = bytes.get(at + 1..at + 3);
            if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                return false;
            }
            at += 3;
        } else if is_unreserved(*b) || SUB_DELIMITERS.contains(b) || more.contains(b) {
            at += 1;
        } else {
            return false;
        }
    }
    true
}

/// `true` if the percent escapes of a text of `uri_chars` decode to UTF-8.
fn percent_utf8(text: &str) -> bool {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('%') {
        decoded.extend_from_slice(plain.as_bytes());
        let Some(byte) = escaped
            .get(..2)
            .and_then(|d| u8::from_str_radix(d, 16).ok())
        else {
            return false;
        };
        decoded.push(byte);
        rest = &escaped[2..];
    }
    std::str::from_utf8(&decoded).is_ok()
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

    #[test]
    fn uris() {
        let good = [
            "https://example.org",
            "http://a:80/b%20c?d=e#f",
            "file:///x",
            "urn:a:b",
            "s3://b/k",
            "http://[::1]:8080/",
            "http://[fe80::1%25eth0]/",
            "http://u:p@h",
            "a:",
            "oci://r/i:t",
        ];
        for uri in good {
            assert!(is_uri(uri), "{uri}");
        }
        let bad = [
            "",
            "a",
            "//a/b",
            "1a:b",
            "http://a b",
            "http://[::1",
            "http://a:b",
            "http://%ff/",
            "http://a/%2",
            "http://a/#b#c",
            "http://[::1%eth0]/",
            "http://ä/",
        ];
        for uri in bad {
            assert!(!is_uri(uri), "{uri}");
        }
    }
}
