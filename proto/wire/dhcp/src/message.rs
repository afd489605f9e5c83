//! One DHCP message: the fixed BOOTP part and its options.

use std::net::Ipv4Addr;

use proto_types::MacAddr;

use crate::options::{Options, code};

/// `op` of a client's message.
pub const BOOTP_REQUEST: u8 = 1;
/// `op` of a server's message.
pub const BOOTP_REPLY: u8 = 2;

const MAGIC: [u8; 4] = [99, 130, 83, 99];
const FIXED_LEN: usize = 236;
const SNAME: std::ops::Range<usize> = 44..108;
const FILE: std::ops::Range<usize> = 108..236;
/// The boot file name and its terminating NUL share 128 bytes.
const FILE_LEN_MAX: usize = 127;
const SNAME_LEN_MAX: usize = 63;
/// Shortest message written, bytes: BOOTP relays may drop shorter ones (RFC 1542 §2.1).
const PACKET_LEN_MIN: usize = 300;
const HTYPE_ETHERNET: u8 = 1;
const FLAG_BROADCAST: u16 = 0x8000;

/// The message type (option 53).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The client looks for servers.
    Discover = 1,
    /// The server offers an address.
    Offer = 2,
    /// The client accepts an offer, or renews a lease.
    Request = 3,
    /// The client found the address in use.
    Decline = 4,
    /// The server grants the lease.
    Ack = 5,
    /// The server refuses the lease.
    Nak = 6,
    /// The client releases the lease.
    Release = 7,
    /// The client has an address and requests only options.
    Inform = 8,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Discover,
            2 => Self::Offer,
            3 => Self::Request,
            4 => Self::Decline,
            5 => Self::Ack,
            6 => Self::Nak,
            7 => Self::Release,
            8 => Self::Inform,
            _ => return None,
        })
    }
}

/// The reason why bytes are not a DHCP message that is served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The fixed part is cut.
    #[error("{0} bytes are too few for a DHCP message")]
    Short(usize),
    /// The first byte is not an operation.
    #[error("op {0} is neither request nor reply")]
    Op(u8),
    /// The message is not about an Ethernet card.
    #[error("hardware type {htype} with {hlen} bytes is not Ethernet")]
    Hardware {
        /// Type of the hardware address.
        htype: u8,
        /// Length of the hardware address, bytes.
        hlen: u8,
    },
    /// The message is plain BOOTP.
    #[error("no DHCP magic: plain BOOTP is not served")]
    Magic,
    /// Option 53 is missing or unknown.
    #[error("no valid message type")]
    Kind,
}

/// A DHCP message on Ethernet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// [`BOOTP_REQUEST`] or [`BOOTP_REPLY`].
    pub op: u8,
    /// The message type (option 53).
    pub kind: Kind,
    /// Number of relays that forwarded the message.
    pub hops: u8,
    /// Transaction id, chosen by the client.
    pub xid: u32,
    /// Time since the client began, seconds.
    pub secs: u16,
    /// Flags. The highest bit requests broadcast answers.
    pub flags: u16,
    /// Current address of the client.
    pub ciaddr: Ipv4Addr,
    /// Address assigned to the client.
    pub yiaddr: Ipv4Addr,
    /// Next server of the boot.
    pub siaddr: Ipv4Addr,
    /// Relay that the message came through.
    pub giaddr: Ipv4Addr,
    /// Hardware address of the client.
    pub chaddr: MacAddr,
    /// Name of the boot server; cut at 63 bytes when written.
    pub sname: String,
    /// Boot file. Written into the fixed field only if it fits, so callers also set option 67.
    pub file: String,
    /// All options except 53, which is `kind`.
    pub options: Options,
}

impl Message {
    /// An answer to `request` with the fields a server must copy (RFC 2131 §4.3.1, RFC 3046 §2.2).
    #[must_use]
    pub fn reply_to(request: &Self, kind: Kind) -> Self {
        let mut options = Options::default();
        if let Some(relay) = request.options.get(code::RELAY_AGENT) {
            options.set(code::RELAY_AGENT, relay);
        }
        Self {
            op: BOOTP_REPLY,
            kind,
            hops: 0,
            xid: request.xid,
            secs: 0,
            flags: request.flags,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: request.giaddr,
            chaddr: request.chaddr,
            sname: String::new(),
            file: String::new(),
            options,
        }
    }

    /// `true` if the client cannot receive unicast before it has an address.
    #[must_use]
    pub fn wants_broadcast(&self) -> bool {
        self.flags & FLAG_BROADCAST != 0
    }

    /// Decodes a message. A truncated option is left out.
    ///
    /// # Errors
    /// The fixed part is truncated or not of Ethernet, or the message type is missing or unknown.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let short = || DecodeError::Short(bytes.len());
        let fixed = bytes.first_chunk::<FIXED_LEN>().ok_or_else(short)?;
        let op = fixed[0];
        if op != BOOTP_REQUEST && op != BOOTP_REPLY {
            return Err(DecodeError::Op(op));
        }
        if fixed[1] != HTYPE_ETHERNET || fixed[2] != 6 {
            return Err(DecodeError::Hardware {
                htype: fixed[1],
                hlen: fixed[2],
            });
        }
        let rest = bytes.get(FIXED_LEN..).unwrap_or_default();
        let (magic, tail) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        if *magic != MAGIC {
            return Err(DecodeError::Magic);
        }
        let (mut options, overload) = read_options(fixed, tail);
        let kind = options
            .byte(code::MESSAGE_TYPE)
            .and_then(Kind::from_byte)
            .ok_or(DecodeError::Kind)?;
        options.remove(code::MESSAGE_TYPE);
        options.remove(code::OVERLOAD);
        let address =
            |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
        Ok(Self {
            op,
            kind,
            hops: fixed[3],
            xid: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
            secs: u16::from_be_bytes([fixed[8], fixed[9]]),
            flags: u16::from_be_bytes([fixed[10], fixed[11]]),
            ciaddr: address(12),
            yiaddr: address(16),
            siaddr: address(20),
            giaddr: address(24),
            chaddr: MacAddr([
                fixed[28], fixed[29], fixed[30], fixed[31], fixed[32], fixed[33],
            ]),
            sname: if overload & 2 == 0 {
                c_string(&fixed[SNAME])
            } else {
                String::new()
            },
            file: if overload & 1 == 0 {
                c_string(&fixed[FILE])
            } else {
                String::new()
            },
            options,
        })
    }

    /// Writes the message, at least 300 bytes long.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0_u8; FIXED_LEN];
        out[0] = self.op;
        out[1] = HTYPE_ETHERNET;
        out[2] = 6;
        out[3] = self.hops;
        out[4..8].copy_from_slice(&self.xid.to_be_bytes());
        out[8..10].copy_from_slice(&self.secs.to_be_bytes());
        out[10..12].copy_from_slice(&self.flags.to_be_bytes());
        out[12..16].copy_from_slice(&self.ciaddr.octets());
        out[16..20].copy_from_slice(&self.yiaddr.octets());
        out[20..24].copy_from_slice(&self.siaddr.octets());
        out[24..28].copy_from_slice(&self.giaddr.octets());
        out[28..34].copy_from_slice(&self.chaddr.0);
        let sname = &self.sname.as_bytes()[..self.sname.len().min(SNAME_LEN_MAX)];
        out[SNAME][..sname.len()].copy_from_slice(sname);
        if self.file.len() <= FILE_LEN_MAX {
            out[FILE][..self.file.len()].copy_from_slice(self.file.as_bytes());
        }
        out.extend_from_slice(&MAGIC);
        let mut options = self.options.clone();
        options.set(code::MESSAGE_TYPE, [self.kind as u8]);
        options.remove(code::OVERLOAD);
        options.write(&mut out);
        if out.len() < PACKET_LEN_MIN {
            out.resize(PACKET_LEN_MIN, 0);
        }
        out
    }
}

/// Reads the options of the tail and, if option 52 is set, those in `file` and `sname`.
fn read_options(fixed: &[u8; FIXED_LEN], tail: &[u8]) -> (Options, u8) {
    let mut options = Options::default();
    options.read(tail);
    let overload = options.byte(code::OVERLOAD).unwrap_or(0);
    if overload & 1 != 0 {
        options.read(&fixed[FILE]);
    }
    if overload & 2 != 0 {
        options.read(&fixed[SNAME]);
    }
    (options, overload)
}

fn c_string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discover() -> Message {
        let mut options = Options::default();
        options.set(code::VENDOR_CLASS, "PXEClient:Arch:00007:UNDI:003000");
        options.set(code::CLIENT_ARCH, [0, 7]);
        options.set(code::RELAY_AGENT, [1, 2, 0, 9]);
        options.set(code::CLIENT_ID, [1; 300]);
        Message {
            op: BOOTP_REQUEST,
            kind: Kind::Discover,
            hops: 1,
            xid: 0xdead_beef,
            secs: 4,
            flags: FLAG_BROADCAST,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::new(10, 0, 0, 9),
            siaddr: Ipv4Addr::new(10, 0, 0, 1),
            giaddr: Ipv4Addr::new(10, 0, 0, 2),
            chaddr: MacAddr([0x52, 0x54, 0, 0x77, 1, 1]),
            sname: "boot".into(),
            file: "undionly.kpxe".into(),
            options,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let message = discover();
        let bytes = message.encode();
        assert_eq!(
            &bytes[240..243],
            &[53, 1, 1],
            "the message type is the first option"
        );
        assert_eq!(Message::decode(&bytes).unwrap(), message);
    }

    #[test]
    fn relay_option_is_last_and_copied_into_a_reply() {
        let reply = Message::reply_to(&discover(), Kind::Offer);
        let bytes = reply.encode();
        assert_eq!(&bytes[243..250], &[82, 4, 1, 2, 0, 9, 255]);
        assert!(bytes.len() >= PACKET_LEN_MIN);
        assert!(reply.wants_broadcast());
    }

    #[test]
    fn options_in_file_and_sname_are_read() {
        let mut bytes = discover().encode();
        bytes.truncate(240);
        bytes.extend_from_slice(&[52, 1, 3, 255]);
        bytes[108..112].copy_from_slice(&[53, 1, 1, 255]);
        bytes[44..49].copy_from_slice(&[93, 2, 0, 16, 255]);
        let message = Message::decode(&bytes).unwrap();
        assert_eq!(message.options.short(code::CLIENT_ARCH), Some(16));
        assert_eq!(message.file, "");
        assert_eq!(message.sname, "");
    }

    #[test]
    fn a_cut_option_is_left_out() {
        let mut bytes = discover().encode();
        bytes.truncate(240);
        bytes.extend_from_slice(&[53, 1, 1, 60, 200, b'P']);
        let message = Message::decode(&bytes).unwrap();
        assert_eq!(message.kind, Kind::Discover);
        assert_eq!(message.options.get(code::VENDOR_CLASS), None);
    }

    #[test]
    fn bad_packets_are_refused_by_reason() {
        let good = discover().encode();
        assert_eq!(Message::decode(&good[..100]), Err(DecodeError::Short(100)));
        assert_eq!(Message::decode(&good[..238]), Err(DecodeError::Short(238)));
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Message::decode(&bytes)
        };
        assert_eq!(with(0, 3), Err(DecodeError::Op(3)));
        assert_eq!(with(1, 6), Err(DecodeError::Hardware { htype: 6, hlen: 6 }));
        assert_eq!(with(236, 0), Err(DecodeError::Magic));
        assert_eq!(with(242, 99), Err(DecodeError::Kind));
    }

    #[test]
    fn no_prefix_and_no_flipped_byte_panics() {
        let good = discover().encode();
        for len in 0..good.len() {
            drop(Message::decode(&good[..len]));
        }
        for at in 0..good.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = byte;
                if let Ok(message) = Message::decode(&bytes) {
                    assert_eq!(
                        Message::decode(&message.encode()).unwrap().kind,
                        message.kind
                    );
                }
            }
        }
    }
}
