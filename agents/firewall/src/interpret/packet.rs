use std::net::IpAddr;

use crate::rule::protocol_number;

/// State of a packet's flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowState {
    /// The first packet of a flow.
    #[default]
    New,
    /// A later packet of a flow that was accepted.
    Established,
    /// A message about a flow that was accepted.
    Related,
    /// A packet that connection tracking refuses.
    Invalid,
}

/// A packet that is forwarded, or that the firewall receives or sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Destination port of TCP, UDP or SCTP; type of ICMP.
    pub port: u16,
    /// Interface that it came in by. Empty if the firewall itself sends it.
    pub input: String,
    /// Interface that it leaves by.
    pub output: String,
    /// State of its flow.
    pub state: FlowState,
    /// Mark of its flow. 0 means that it has none.
    pub mark: u32,
    /// `true` if it goes against the direction of the flow's first packet.
    pub is_reply: bool,
    /// `true` if it is a part of a datagram.
    pub is_fragment: bool,
}

impl FlowState {
    /// The state as `ct state` loads it.
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Invalid => 1,
            Self::Established => 2,
            Self::Related => 4,
            Self::New => 8,
        }
    }
}

impl Packet {
    /// Bytes of a header. `None` if the packet does not have them.
    pub(super) fn bytes(&self, is_network: bool, offset: u32, length: u32) -> Option<Vec<u8>> {
        let header = if is_network {
            self.network_header()
        } else {
            self.transport_header()
        };
        let begin = usize::try_from(offset).ok()?;
        let end = begin.checked_add(usize::try_from(length).ok()?)?;
        header.get(begin..end).map(<[u8]>::to_vec)
    }

    fn network_header(&self) -> Vec<u8> {
        let (mut header, source, destination) = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => (
                vec![0; 12],
                source.octets().to_vec(),
                destination.octets().to_vec(),
            ),
            (IpAddr::V6(source), IpAddr::V6(destination)) => (
                vec![0; 8],
                source.octets().to_vec(),
                destination.octets().to_vec(),
            ),
            _ => return Vec::new(),
        };
        if self.is_fragment && self.source.is_ipv4() {
            // "More fragments".
            header[6] = 0x20;
        }
        header.extend(source);
        header.extend(destination);
        header
    }

    fn transport_header(&self) -> Vec<u8> {
        let [high, low] = self.port.to_be_bytes();
        match self.protocol {
            protocol_number::TCP | protocol_number::UDP | protocol_number::SCTP => {
                vec![0, 0, high, low, 0, 0, 0, 0]
            }
            protocol_number::ICMP | protocol_number::ICMP6 => vec![low, 0, 0, 0],
            _ => vec![0; 8],
        }
    }
}

/// An interface name as `meta` loads it.
pub(super) fn interface(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(16, 0);
    bytes
}
