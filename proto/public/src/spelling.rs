//! The canonical form of ids that can be written in several ways.
//!
//! Authorisation, policies, audit filters and the state compare ids as text or by value. They agree
//! only on canonical text, so the gate rewrites each request first ([`crate::one_spelling`]), and a
//! policy with another form, which could never match, is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an id that can be written in several ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// A UUID: in any case, with or without hyphens, in braces, as a URN.
    Uuid,
    /// An Ethernet address: in any case.
    Mac,
    /// An IP address: IPv6 in any case and with any zeros.
    Ip,
    /// A prefix: the address as above.
    Prefix,
    /// A prefix whose host bits are ignored; they become 0.
    Network,
    /// A UUID or an IP address, if it is one.
    Any,
}

/// Digits between the hyphens of a UUID.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
/// Digits of a UUID.
const UUID_DIGITS: usize = 32;
/// Longest text that is examined, bytes. The longest form is a UUID as a URN (45).
const LEN_MAX: usize = 64;

impl Spelling {
    /// The canonical form of a text. `None` if the text is canonical already, or is not of this kind.
    pub fn rewrite(self, text: &str) -> Option<String> {
        if text.len() > LEN_MAX || is_uuid(text) {
            return None;
        }
        let written = match self {
            Self::Uuid => uuid(text),
            Self::Mac => mac(text),
            Self::Ip => ip(text),
            Self::Prefix => prefix(text, false),
            Self::Network => prefix(text, true),
            Self::Any => uuid(text).or_else(|| ip(text)),
        };
        written.filter(|written| written != text)
    }

    /// The canonical form of a text of any kind. `None` if it is canonical or of no kind.
    pub fn rewrite_any(text: &str) -> Option<String> {
        let kinds = [Self::Uuid, Self::Mac, Self::Ip, Self::Prefix];
        kinds.into_iter().find_map(|kind| kind.rewrite(text))
    }
}

/// `true` if a text is a UUID in canonical form. Most ids are, and need no further check.
fn is_uuid(text: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    text.len() == UUID_DIGITS + 4
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => is_digit(&byte),
        })
}

fn uuid(text: &str) -> Option<String> {
    let inner = text
        .strip_prefix("urn:uuid:")
        .or_else(|| text.strip_prefix('{')?.strip_suffix('}'));
    let is_wrapped = inner.is_some();
    let inner = inner.unwrap_or(text);
    let is_plain = !is_wrapped && inner.len() == UUID_DIGITS;
    let digits: String = match is_plain {
        true => inner.to_ascii_lowercase(),
        false => {
            let groups: Vec<&str> = inner.split('-').collect();
            let lengths = groups.iter().map(|group| group.len());
            if !lengths.eq(UUID_GROUPS) {
                return None;
            }
            groups.concat().to_ascii_lowercase()
        }
    };
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut rest = digits.as_str();
    let groups = UUID_GROUPS.map(|length| {
        let (group, left) = rest.split_at(length.min(rest.len()));
        rest = left;
        group
    });
    Some(groups.join("-"))
}

fn mac(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_mac = bytes.len() == 17
        && bytes.iter().enumerate().all(|(at, byte)| match at % 3 {
            2 => *byte == b':',
            _ => byte.is_ascii_hexdigit(),
        });
    is_mac.then(|| text.to_ascii_lowercase())
}

fn ip(text: &str) -> Option<String> {
    text.parse::<IpAddr>().ok().map(|ip| ip.to_string())
}

fn prefix(text: &str, is_network: bool) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    if !length.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let length: u32 = length.parse().ok()?;
    let address = match is_network {
        true => truncated(address, length)?,
        false => address,
    };
    Some(format!("{address}/{length}"))
}

fn truncated(address: IpAddr, length: u32) -> Option<IpAddr> {
    let host = |width: u32| width.checked_sub(length);
    Some(match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(host(32)?).unwrap_or(0);
            Ipv4Addr::from(u32::from(address) & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(host(128)?).unwrap_or(0);
            Ipv6Addr::from(u128::from(address) & mask).into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    #[test]
    fn every_spelling_becomes_one() {
        let plain = ID.replace('-', "");
        for other in [
            ID.to_ascii_uppercase(),
            plain.to_ascii_uppercase(),
            plain,
            format!("{{{ID}}}"),
            format!("urn:uuid:{}", ID.to_ascii_uppercase()),
        ] {
            assert_eq!(
                Spelling::Uuid.rewrite(&other).as_deref(),
                Some(ID),
                "{other}"
            );
            assert_eq!(
                Spelling::Any.rewrite(&other).as_deref(),
                Some(ID),
                "{other}"
            );
        }
        for (kind, other, one) in [
            (Spelling::Mac, "52:54:00:AB:cd:01", "52:54:00:ab:cd:01"),
            (Spelling::Ip, "FD00:0:0::1", "fd00::1"),
            (Spelling::Any, "FD00:0:0::1", "fd00::1"),
            (Spelling::Prefix, "FD00:0::/64", "fd00::/64"),
            (Spelling::Prefix, "10.1.2.3/08", "10.1.2.3/8"),
            (Spelling::Network, "10.1.2.3/8", "10.0.0.0/8"),
            (Spelling::Network, "1.2.3.4/0", "0.0.0.0/0"),
            (Spelling::Network, "FD00::1/64", "fd00::/64"),
        ] {
            assert_eq!(kind.rewrite(other).as_deref(), Some(one), "{other}");
            assert_eq!(kind.rewrite(one), None, "{one}");
        }
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "",
            "*",
            ID,
            "0f8fad5b-d9cb-469f-a165-70867728950",
            "0f8fad5bd9cb-469f-a165-70867728950e0",
            "zf8fad5b-d9cb-469f-a165-70867728950e",
            "{0f8fad5bd9cb469fa16570867728950e}",
            "52-54-00-AB-CD-01",
            "fe80::1%eth0",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "10.0.0.0/33x",
            "Debian",
        ] {
            assert_eq!(Spelling::rewrite_any(text), None, "{text}");
            assert_eq!(Spelling::Network.rewrite(text), None, "{text}");
        }
        assert_eq!(Spelling::Network.rewrite("10.0.0.1/33"), None);
    }
}
