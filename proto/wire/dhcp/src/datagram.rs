//! DHCP within a whole Ethernet frame, for hosts that have no address yet: a relay takes requests
//! from the wire and puts answers on it.

use std::net::Ipv4Addr;

use proto_types::MacAddr;

/// UDP port of clients.
const CLIENT_PORT: u16 = 68;
/// UDP port of servers and relays.
const SERVER_PORT: u16 = 67;
const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
const UDP_LEN: usize = 8;
const ETHERTYPE_IPV4: [u8; 2] = [8, 0];
const PROTOCOL_UDP: u8 = 17;
/// "More fragments" and the offset: a fragment is no whole datagram.
const FRAGMENT: u16 = 0x3fff;
/// Time to live of an answer: it crosses no router.
const TTL: u8 = 64;

/// The DHCP message in a client's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFrame<'a> {
    /// Sender of the frame.
    pub source: MacAddr,
    /// `true` if it goes to every host: an unicast one finds its server without a relay.
    pub is_broadcast: bool,
    /// Bytes of the message.
    pub payload: &'a [u8],
}

impl<'a> ClientFrame<'a> {
    /// Reads a frame to UDP port 67. `None` if it is any other frame, or not whole. Padding after
    /// the datagram is cut.
    #[must_use]
    pub fn decode(frame: &'a [u8]) -> Option<Self> {
        let (ethernet, rest) = frame.split_first_chunk::<ETHERNET_LEN>()?;
        if ethernet[12..] != ETHERTYPE_IPV4 {
            return None;
        }
        let first = *rest.first()?;
        let header = usize::from(first & 0x0f) * 4;
        let total = usize::from(number(rest, 2)?);
        let packet = rest.get(..total)?;
        let is_whole = number(packet, 6)? & FRAGMENT == 0;
        let is_udp = *packet.get(9)? == PROTOCOL_UDP;
        if first >> 4 != 4 || header < IPV4_LEN || !is_whole || !is_udp {
            return None;
        }
        let udp = packet.get(header..)?;
        let length = usize::from(number(udp, 4)?);
        if number(udp, 2)? != SERVER_PORT {
            return None;
        }
        Some(Self {
            source: MacAddr(ethernet[6..12].try_into().ok()?),
            is_broadcast: ethernet[..6] == [0xff; 6],
            payload: udp.get(UDP_LEN..length)?,
        })
    }
}

/// The addresses of a server's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerFrame {
    /// MAC address of the sender.
    pub source_mac: MacAddr,
    /// MAC address of the client, or broadcast.
    pub target_mac: MacAddr,
    /// Address of the server.
    pub source: Ipv4Addr,
    /// Address of the client, or broadcast.
    pub target: Ipv4Addr,
}

impl ServerFrame {
    /// Writes a frame to UDP port 68. `None` if the message is too long for a datagram.
    #[must_use]
    pub fn encode(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let udp_len = u16::try_from(UDP_LEN + payload.len()).ok()?;
        let total = u16::try_from(IPV4_LEN).ok()?.checked_add(udp_len)?;
        let mut out = Vec::with_capacity(ETHERNET_LEN + usize::from(total));
        out.extend_from_slice(&self.target_mac.0);
        out.extend_from_slice(&self.source_mac.0);
        out.extend_from_slice(&ETHERTYPE_IPV4);
        let [high, low] = total.to_be_bytes();
        let mut header = [
            0x45,
            0,
            high,
            low,
            0,
            0,
            0,
            0,
            TTL,
            PROTOCOL_UDP,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        header[12..16].copy_from_slice(&self.source.octets());
        header[16..20].copy_from_slice(&self.target.octets());
        let sum = checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&sum);
        out.extend_from_slice(&header);
        // Without a checksum (RFC 768): the Ethernet frame has one, and goes no further.
        for field in [SERVER_PORT, CLIENT_PORT, udp_len, 0] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        out.extend_from_slice(payload);
        Some(out)
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(pair.try_into().ok()?))
}

/// Checksum of an IPv4 header (RFC 1071).
fn checksum(header: &[u8; IPV4_LEN]) -> u16 {
    let pairs = header.chunks_exact(2);
    let mut sum: u32 = pairs
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    /// A client's frame, made from an answer with its ports exchanged.
    fn request(payload: &[u8]) -> Vec<u8> {
        let frame = ServerFrame {
            source_mac: MAC,
            target_mac: MacAddr([0xff; 6]),
            source: Ipv4Addr::UNSPECIFIED,
            target: Ipv4Addr::BROADCAST,
        };
        let mut bytes = frame.encode(payload).unwrap();
        bytes[34..38].copy_from_slice(&[0, 68, 0, 67]);
        bytes
    }

    #[test]
    fn a_request_is_found_in_its_frame() {
        let mut bytes = request(b"hello");
        let found = ClientFrame {
            source: MAC,
            is_broadcast: true,
            payload: b"hello",
        };
        assert_eq!(ClientFrame::decode(&bytes), Some(found));
        bytes.resize(60, 0xaa);
        assert_eq!(ClientFrame::decode(&bytes), Some(found), "padded");
    }

    #[test]
    fn other_frames_are_left_alone() {
        let good = request(b"hello");
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            ClientFrame::decode(&bytes).is_some()
        };
        for (what, at, byte) in [
            ("IPv6", 12, 0x86),
            ("version 6", 14, 0x65),
            ("a short header", 14, 0x44),
            ("a long header", 14, 0x4f),
            ("longer than the frame", 17, 200),
            ("a fragment", 20, 0x20),
            ("TCP", 23, 6),
            ("to a client", 37, 68),
            ("UDP longer than IP", 39, 100),
            ("UDP shorter than its header", 39, 7),
        ] {
            assert!(!with(at, byte), "{what}");
        }
        for len in 0..good.len() {
            assert_eq!(ClientFrame::decode(&good[..len]), None, "{len}");
        }
    }

    #[test]
    fn the_header_of_an_answer_sums_to_nothing() {
        let frame = ServerFrame {
            source_mac: MAC,
            target_mac: MAC,
            source: Ipv4Addr::new(10, 77, 1, 2),
            target: Ipv4Addr::new(10, 77, 1, 100),
        };
        let bytes = frame.encode(&[1; 301]).unwrap();
        assert_eq!(checksum(bytes[14..34].try_into().unwrap()), 0);
        assert_eq!(bytes.len(), 14 + 20 + 8 + 301);
        assert_eq!(frame.encode(&vec![0; 70_000]), None);
    }
}
