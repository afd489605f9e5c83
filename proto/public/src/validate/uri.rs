//! The grammar of URIs (RFC 3986). Pure functions of the text.

use std::net::Ipv6Addr;
use std::str::FromStr;

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

#[cfg(test)]
mod tests {
    use super::*;

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
