//! IPv6 router advertisement and solicitation (RFC 4861 §4.1, §4.2). iPXE waits about fifteen
//! seconds for an advertisement before it continues with IPv4.

use std::net::Ipv6Addr;

use proto_types::MacAddr;

/// ICMPv6 type of a solicitation.
const TYPE_SOLICITATION: u8 = 133;
/// ICMPv6 type of an advertisement.
const TYPE_ADVERTISEMENT: u8 = 134;
const OPTION_SOURCE_LINK_LAYER: u8 = 1;
const OPTION_PREFIX: u8 = 3;
const OPTION_MTU: u8 = 5;
/// Flags "on-link" and "autonomous": hosts configure an address in the prefix.
const PREFIX_FLAGS: u8 = 0xc0;

/// A router advertisement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RouterAdvertisement {
    /// Lifetime as a default router, s. 0 means not a default router.
    pub(crate) router_lifetime_s: u16,
    /// Ethernet address of the sender.
    pub(crate) source: MacAddr,
    /// A /64 for stateless address configuration, with its lifetime in seconds.
    pub(crate) prefix: Option<(Ipv6Addr, u32)>,
    pub(crate) mtu: Option<u32>,
}

impl RouterAdvertisement {
    /// Encodes the ICMPv6 payload. The checksum is 0; the kernel fills it in for raw sockets.
    #[must_use]
    pub(crate) fn encode(&self) -> Vec<u8> {
        // Hop limit 64. The flags M and O are clear: no client is to wait for a DHCPv6 server.
        let mut out = vec![TYPE_ADVERTISEMENT, 0, 0, 0, 64, 0];
        out.extend_from_slice(&self.router_lifetime_s.to_be_bytes());
        out.extend_from_slice(&[0; 8]);
        // Lengths of options are in units of eight bytes (RFC 4861 §4.6).
        out.extend_from_slice(&[OPTION_SOURCE_LINK_LAYER, 1]);
        out.extend_from_slice(&self.source.0);
        if let Some(mtu) = self.mtu {
            out.extend_from_slice(&[OPTION_MTU, 1, 0, 0]);
            out.extend_from_slice(&mtu.to_be_bytes());
        }
        if let Some((prefix, lifetime_s)) = self.prefix {
            out.extend_from_slice(&[OPTION_PREFIX, 4, 64, PREFIX_FLAGS]);
            out.extend_from_slice(&lifetime_s.to_be_bytes());
            out.extend_from_slice(&lifetime_s.to_be_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&prefix.octets());
        }
        out
    }
}

/// `true` if an ICMPv6 payload is a well-formed router solicitation.
#[must_use]
pub(crate) fn is_solicitation(payload: &[u8]) -> bool {
    // RFC 4861 §6.1.1: code 0 and at least eight bytes.
    matches!(payload, [TYPE_SOLICITATION, 0, rest @ ..] if rest.len() >= 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advertisement_has_the_bytes_of_the_rfc() {
        let ra = RouterAdvertisement {
            router_lifetime_s: 0x0102,
            source: MacAddr([2, 0, 0, 0, 0, 1]),
            prefix: Some(("fd77:1::".parse().unwrap(), 600)),
            mtu: Some(1500),
        };
        let bytes = ra.encode();
        assert_eq!(&bytes[..8], &[134, 0, 0, 0, 64, 0, 1, 2]);
        assert_eq!(&bytes[16..24], &[1, 1, 2, 0, 0, 0, 0, 1]);
        assert_eq!(&bytes[24..32], &[5, 1, 0, 0, 0, 0, 5, 220]);
        assert_eq!(&bytes[32..36], &[3, 4, 64, 0xc0]);
        assert_eq!(bytes.len(), 64);
    }

    #[test]
    fn only_a_whole_solicitation_counts() {
        assert!(is_solicitation(&[133, 0, 1, 2, 0, 0, 0, 0]));
        assert!(!is_solicitation(&[133, 0, 1, 2, 0, 0, 0]));
        assert!(!is_solicitation(&[134, 0, 0, 0, 0, 0, 0, 0]));
        assert!(!is_solicitation(&[]));
    }
}
