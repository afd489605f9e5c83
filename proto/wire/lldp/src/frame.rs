//! LLDP frames: what is read of a neighbour's, and what is written of our own.

use thiserror::Error;

use crate::tlv::{TLV_END, next_tlv, put};

/// A MAC address in wire order.
pub type Mac = [u8; 6];

/// Longest frame that is read, bytes: the Ethernet header and 1500 bytes.
pub const FRAME_MAX: usize = 1514;

const MULTICAST: Mac = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];
const ETHERTYPE: [u8; 2] = [0x88, 0xcc];
const HEADER_LEN: usize = 14;
/// A chassis or port id has one byte of subtype before it and is at most 255 bytes long.
const ID_MAX: usize = 255;

const TLV_CHASSIS: u8 = 1;
const TLV_PORT: u8 = 2;
const TLV_TTL: u8 = 3;
const TLV_SYSTEM_NAME: u8 = 5;
const TLV_SYSTEM_DESCRIPTION: u8 = 6;

const CHASSIS_MAC: u8 = 4;
const CHASSIS_LOCAL: u8 = 7;
const PORT_MAC: u8 = 3;
const PORT_INTERFACE_NAME: u8 = 5;

/// The contents of a neighbour's frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Address of the port that sent it.
    pub source: Mac,
    /// A MAC address as `aa:bb:cc:dd:ee:ff`, or text of the sender's choice.
    pub chassis_id: String,
    /// Kernel name of the port, or its MAC address.
    pub port_id: String,
    /// A switch of ours puts its id here; an installed machine its UUID.
    pub system_name: String,
    /// Free text.
    pub system_description: String,
    /// How long this holds, seconds; 0 takes the neighbour away.
    pub ttl_s: u16,
}

/// Why a frame is not LLDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The frame is of another protocol.
    #[error("not an LLDP frame")]
    NotLldp,
    /// The frame is cut.
    #[error("the frame ends inside a TLV")]
    Truncated,
    /// The frame does not begin as the standard demands.
    #[error("chassis id, port id or time to live is missing or out of order")]
    Mandatory,
}

impl Frame {
    /// Reads a whole Ethernet frame.
    ///
    /// # Errors
    /// When it is not LLDP, is cut short, or does not begin with the three mandatory TLVs.
    pub fn decode(frame: &[u8]) -> Result<Self, DecodeError> {
        let (header, mut rest) = frame
            .split_at_checked(HEADER_LEN)
            .ok_or(DecodeError::NotLldp)?;
        if header.get(12..14) != Some(&ETHERTYPE[..]) {
            return Err(DecodeError::NotLldp);
        }
        let mut out = Self::default();
        if let Some(Ok(source)) = header.get(6..12).map(Mac::try_from) {
            out.source = source;
        }
        let mut position = 0_usize;
        while let Some(tlv) = next_tlv(rest)? {
            let (kind, value) = (tlv.kind, tlv.value);
            rest = tlv.rest;
            position += 1;
            match (position, kind) {
                (1, TLV_CHASSIS) => out.chassis_id = id(value, CHASSIS_MAC)?,
                (2, TLV_PORT) => out.port_id = id(value, PORT_MAC)?,
                (3, TLV_TTL) => out.ttl_s = ttl(value)?,
                (1..=3, _) => return Err(DecodeError::Mandatory),
                (_, TLV_SYSTEM_NAME) => out.system_name = text(value),
                (_, TLV_SYSTEM_DESCRIPTION) => out.system_description = text(value),
                _ => {}
            }
        }
        if position < 3 {
            return Err(DecodeError::Mandatory);
        }
        Ok(out)
    }

    /// Writes a whole Ethernet frame to LLDP's nearest-bridge address. Text that is too long for
    /// its TLV is cut at a character boundary.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(&MULTICAST);
        out.extend_from_slice(&self.source);
        out.extend_from_slice(&ETHERTYPE);
        put(
            &mut out,
            TLV_CHASSIS,
            &id_value(&self.chassis_id, CHASSIS_MAC, CHASSIS_LOCAL),
        );
        put(
            &mut out,
            TLV_PORT,
            &id_value(&self.port_id, PORT_MAC, PORT_INTERFACE_NAME),
        );
        put(&mut out, TLV_TTL, &self.ttl_s.to_be_bytes());
        for (kind, value) in [
            (TLV_SYSTEM_NAME, &self.system_name),
            (TLV_SYSTEM_DESCRIPTION, &self.system_description),
        ] {
            if !value.is_empty() {
                put(&mut out, kind, cut(value, ID_MAX).as_bytes());
            }
        }
        put(&mut out, TLV_END, &[]);
        out
    }
}

fn id(value: &[u8], mac_subtype: u8) -> Result<String, DecodeError> {
    let [subtype, body @ ..] = value else {
        return Err(DecodeError::Mandatory);
    };
    match <Mac>::try_from(body) {
        Ok(mac) if *subtype == mac_subtype => Ok(mac_text(mac)),
        _ => Ok(text(body)),
    }
}

fn ttl(value: &[u8]) -> Result<u16, DecodeError> {
    match value {
        [high, low, ..] => Ok(u16::from_be_bytes([*high, *low])),
        _ => Err(DecodeError::Mandatory),
    }
}

/// Printable text of untrusted bytes: control characters would end up in logs and terminals.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}

fn mac_text(mac: Mac) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

fn parse_mac(text: &str) -> Option<Mac> {
    let mut out = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut out {
        let part = parts.next().filter(|p| p.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(out)
}

fn id_value(text: &str, mac_subtype: u8, text_subtype: u8) -> Vec<u8> {
    let (subtype, body) = match parse_mac(text) {
        Some(mac) => (mac_subtype, mac.to_vec()),
        None => (text_subtype, cut(text, ID_MAX).as_bytes().to_vec()),
    };
    let mut out = vec![subtype];
    out.extend(body);
    out
}

fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Mac = [2, 0, 0, 0, 0, 1];

    fn leaf() -> Frame {
        Frame {
            source: SOURCE,
            chassis_id: "leaf1".into(),
            port_id: "swp1".into(),
            system_name: "leaf1".into(),
            system_description: "metalmesh-core 0.1.0".into(),
            ttl_s: 120,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mac = Frame {
            chassis_id: "52:54:00:77:01:01".into(),
            ..leaf()
        };
        let bare = Frame {
            system_name: String::new(),
            system_description: String::new(),
            ..leaf()
        };
        for frame in [leaf(), mac, bare] {
            assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let long = Frame {
            system_name: "ä".repeat(300),
            ..leaf()
        };
        let read = Frame::decode(&long.encode()).unwrap();
        assert_eq!(read.system_name, "ä".repeat(127));
    }

    #[test]
    fn every_prefix_is_refused_or_read() {
        let whole = leaf().encode();
        for end in 0..whole.len() {
            // A frame may end after any complete TLV, but not before the third one.
            if let Ok(frame) = Frame::decode(&whole[..end]) {
                assert_eq!(frame.ttl_s, 120, "cut at {end}");
            }
        }
    }

    #[test]
    fn every_changed_byte_is_survived() {
        let whole = leaf().encode();
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut frame = whole.clone();
                frame[at] = value;
                let _unused = Frame::decode(&frame);
            }
        }
    }

    #[test]
    fn mandatory_parts_come_first() {
        let mut frame = vec![0; 12];
        frame.extend(ETHERTYPE);
        assert_eq!(Frame::decode(&frame), Err(DecodeError::Mandatory));
        put(&mut frame, TLV_SYSTEM_NAME, b"x");
        assert_eq!(Frame::decode(&frame), Err(DecodeError::Mandatory));
        assert_eq!(Frame::decode(b"short"), Err(DecodeError::NotLldp));
    }

    #[test]
    fn control_characters_do_not_pass() {
        let frame = Frame {
            system_name: "a\u{1b}[31mb\n".into(),
            ..leaf()
        };
        assert_eq!(
            Frame::decode(&frame.encode()).unwrap().system_name,
            "a[31mb"
        );
    }
}
