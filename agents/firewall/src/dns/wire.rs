//! Header and question of DNS messages, byte by byte: what the proxy changes in messages that it
//! passes on. Records are read by `simple-dns`.

use std::iter::Peekable;

use super::failure_code::FailureCode;

/// Length of the header, bytes.
pub(super) const HEADER_LEN: usize = 12;
/// Length of an EDNS record without options, bytes.
pub(super) const EDNS_LEN: usize = 11;
/// Longest name on the wire, bytes (RFC 1035).
const NAME_LEN_MAX: usize = 255;
const LABEL_LEN_MAX: usize = 63;
/// Type of the EDNS record.
const TYPE_OPT: u16 = 41;
/// EDNS flag of a client that understands DNSSEC.
const DNSSEC_OK: u32 = 0x8000;
/// Answers over UDP that are asked for, bytes: longer ones could come in fragments, which strangers
/// can forge.
const UDP_SIZE_MAX: u16 = 1232;
const UDP_SIZE_MIN: u16 = 512;

/// The header of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireHeader {
    pub(super) id: u16,
    pub(super) flags: u16,
    pub(super) questions: u16,
    pub(super) answers: u16,
    pub(super) authorities: u16,
    pub(super) additionals: u16,
}

/// The only question of a message.
#[derive(Clone, Debug)]
pub(super) struct WireQuestion<'a> {
    /// Name, type and class.
    pub(super) bytes: &'a [u8],
    /// The name in small letters. Empty if a rule cannot have it.
    pub(super) name: String,
    pub(super) kind: u16,
    pub(super) class: u16,
}

/// EDNS of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Edns {
    /// Longest answer over UDP, bytes.
    pub(super) size: u16,
    flags: u32,
}

pub(super) fn header(bytes: &[u8]) -> Option<WireHeader> {
    let header = bytes.first_chunk::<HEADER_LEN>()?;
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    Some(WireHeader {
        id: short(0),
        flags: short(2),
        questions: short(4),
        answers: short(6),
        authorities: short(8),
        additionals: short(10),
    })
}

/// The question after the header. `None` if it is cut off, or compressed.
pub(super) fn question(bytes: &[u8]) -> Option<WireQuestion<'_>> {
    let rest = bytes.get(HEADER_LEN..)?;
    let mut at = 0;
    let mut name = String::new();
    let mut is_plain = true;
    loop {
        let len = usize::from(*rest.get(at)?);
        if len == 0 {
            break;
        }
        if len > LABEL_LEN_MAX {
            return None;
        }
        let label = rest.get(at + 1..at + 1 + len)?;
        is_plain &= label.iter().all(|byte| is_name_byte(*byte));
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + len;
    }
    let bytes = rest.get(..at + 5)?;
    if at >= NAME_LEN_MAX {
        return None;
    }
    let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    Some(WireQuestion {
        bytes,
        name: if is_plain { name } else { String::new() },
        kind: short(at + 1),
        class: short(at + 3),
    })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Places of the letters in a name on the wire.
pub(super) fn letters(name: &[u8]) -> Peekable<impl Iterator<Item = usize>> {
    let mut label_end = 0;
    let is_letter = move |(index, byte): (usize, &u8)| {
        if index == label_end {
            label_end = index + 1 + usize::from(*byte);
            return None;
        }
        byte.is_ascii_alphabetic().then_some(index)
    };
    name.iter().enumerate().filter_map(is_letter).peekable()
}

/// The EDNS record that is the rest of a query.
pub(super) fn edns(bytes: &[u8]) -> Option<Edns> {
    let record = bytes.first_chunk::<EDNS_LEN>()?;
    let short = |at: usize| u16::from_be_bytes([record[at], record[at + 1]]);
    let is_whole = bytes.len() == EDNS_LEN + usize::from(short(9));
    let flags = u32::from(short(5)) << 16 | u32::from(short(7));
    // A version after 0 would need another answer; there is none.
    let is_known = record[0] == 0 && short(1) == TYPE_OPT && record[6] == 0;
    (is_known && is_whole).then_some(Edns {
        size: short(3),
        flags: flags & DNSSEC_OK,
    })
}

impl Edns {
    pub(super) fn clamped(self) -> Self {
        Self {
            size: self.size.clamp(UDP_SIZE_MIN, UDP_SIZE_MAX),
            ..self
        }
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend(TYPE_OPT.to_be_bytes());
        bytes.extend(self.size.to_be_bytes());
        bytes.extend(self.flags.to_be_bytes());
        bytes.extend([0, 0]);
        bytes
    }
}

/// A refusal of a message whose question is not understood.
pub(super) fn bare_failure(header: &WireHeader, code: FailureCode) -> Vec<u8> {
    // The answer repeats the kind of the query and its wish for recursion.
    let flags = 0x8000 | header.flags & 0x7900 | code as u16;
    let mut bytes = header.id.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend([0; 8]);
    bytes
}
