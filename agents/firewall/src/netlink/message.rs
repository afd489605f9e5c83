use super::attribute::Attribute;
use super::constants::{BATCH_BEGIN, BATCH_END, BATCH_GENERATION, FAMILY_INET, SUBSYSTEM};

/// Length of a netlink header and of nftables' header after it, bytes.
const HEADERS: usize = 16 + 4;
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
/// For requests that read: every object.
pub(super) const DUMP: u16 = 0x300;
/// For requests that create: the object must not exist.
pub(super) const CREATE: u16 = 0x400;
/// For rules: at the end, or after a position.
pub(super) const APPEND: u16 = 0x800;

/// A message to nftables.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Number of the message.
    pub(super) kind: u16,
    /// Flags beside the request itself.
    pub(super) flags: u16,
    /// Content.
    pub(super) attributes: Vec<Attribute>,
}

impl Message {
    /// Appends the message of nftables with a sequence number.
    pub(super) fn encode(&self, sequence: u32, acknowledge: bool, into: &mut Vec<u8>) {
        let flags = REQUEST | self.flags | if acknowledge { ACK } else { 0 };
        let kind = SUBSYSTEM << 8 | self.kind;
        encode(kind, flags, sequence, 0, &self.attributes, into);
    }
}

/// The messages as one transaction. Its begin has the sequence number `begin`, the messages have
/// those after it; the kernel acknowledges the last one.
pub(super) fn batch(messages: &[Message], generation: u32, begin: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let made_for = [Attribute::u32(BATCH_GENERATION, generation)];
    encode(
        BATCH_BEGIN,
        REQUEST,
        begin,
        SUBSYSTEM,
        &made_for,
        &mut bytes,
    );
    for (index, message) in messages.iter().enumerate() {
        let sequence = begin.wrapping_add(u32::try_from(index).unwrap_or(u32::MAX)) + 1;
        message.encode(sequence, index + 1 == messages.len(), &mut bytes);
    }
    encode(BATCH_END, REQUEST, begin, SUBSYSTEM, &[], &mut bytes);
    bytes
}

fn encode(
    kind: u16,
    flags: u16,
    sequence: u32,
    resource: u16,
    attributes: &[Attribute],
    into: &mut Vec<u8>,
) {
    let begin = into.len();
    into.extend([0; HEADERS]);
    for attribute in attributes {
        attribute.encode(into);
    }
    let length = u32::try_from(into.len() - begin).unwrap_or(u32::MAX);
    let header = &mut into[begin..begin + HEADERS];
    header[0..4].copy_from_slice(&length.to_ne_bytes());
    header[4..6].copy_from_slice(&kind.to_ne_bytes());
    header[6..8].copy_from_slice(&flags.to_ne_bytes());
    header[8..12].copy_from_slice(&sequence.to_ne_bytes());
    // The family of a message; that of a batch is unspecified.
    header[16] = if resource == 0 { FAMILY_INET } else { 0 };
    header[18..20].copy_from_slice(&resource.to_be_bytes());
}
