use super::{MetaKey, PayloadBase, Register, Verdict};

/// A step of a rule. A step that does not match ends the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// Loads a property into a register.
    Meta {
        /// The property.
        key: MetaKey,
        /// Destination.
        register: Register,
    },
    /// Loads bytes of the packet.
    Payload {
        /// Header.
        base: PayloadBase,
        /// Offset in the header, bytes.
        offset: u32,
        /// Length, bytes.
        length: u32,
        /// Destination.
        register: Register,
    },
    /// Loads 1 if an IPv6 packet is a fragment, else 0; one byte. Matches no packet of IPv4.
    HasFragmentHeader {
        /// Destination.
        register: Register,
    },
    /// Loads the state of the flow.
    CtState {
        /// Destination.
        register: Register,
    },
    /// Loads the direction of the packet in its flow, one byte: 0 for that of the first packet, 1 for
    /// replies.
    CtDirection {
        /// Destination.
        register: Register,
    },
    /// Loads the mark of the flow, 4 bytes in the byte order of the host; 0 without one.
    CtMark {
        /// Destination.
        register: Register,
    },
    /// Gives the flow the mark in a register.
    SetCtMark {
        /// Register of the mark.
        register: Register,
    },
    /// Keeps the bits of a mask.
    Mask {
        /// Source and destination.
        register: Register,
        /// Mask, as long as the value.
        mask: Vec<u8>,
    },
    /// Keeps the bits of a mask, and sets others.
    Replace {
        /// Source and destination.
        register: Register,
        /// Mask, as long as the value.
        mask: Vec<u8>,
        /// Bits to set, none of which is in the mask.
        value: Vec<u8>,
    },
    /// Matches if the register has this value.
    Equal {
        /// Register.
        register: Register,
        /// Value.
        value: Vec<u8>,
    },
    /// Matches if the register has another value.
    NotEqual {
        /// Register.
        register: Register,
        /// Value.
        value: Vec<u8>,
    },
    /// Matches if the set has the key in the register.
    Lookup {
        /// Name of the set.
        set: String,
        /// First register of the key.
        register: Register,
        /// Destination of the element's data, if the set is a map.
        destination: Option<Register>,
    },
    /// Matches if the set does not have the key in the register.
    LookupMissing {
        /// Name of the set.
        set: String,
        /// First register of the key.
        register: Register,
    },
    /// Counts in a counter.
    Count(String),
    /// Matches if the map has the key in the register, and counts in the element's counter.
    CountByMap {
        /// Name of the map.
        map: String,
        /// First register of the key.
        register: Register,
    },
    /// Matches at most this many packets a second.
    LimitPackets(u32),
    /// Matches packets above a rate.
    OverPackets {
        /// Packets a second.
        rate: u32,
        /// Packets that may come at once.
        burst: u32,
    },
    /// Matches packets above a rate of their own key: a set that packets add elements to has the rate
    /// of each. A packet for whose key the set has no room does not match.
    OverPacketsByKey {
        /// Name of the set.
        set: String,
        /// First register of the key.
        register: Register,
        /// Packets of a key a second.
        rate: u32,
        /// Packets of a key that may come at once.
        burst: u32,
    },
    /// Matches packets above this many bytes a second.
    OverBytes(u64),
    /// Writes the packet to the kernel's log, after a prefix.
    Log(String),
    /// Sends the packet to the agent, after a prefix.
    Report(String),
    /// Loads a constant.
    Load {
        /// Destination.
        register: Register,
        /// Value.
        value: Vec<u8>,
    },
    /// Jenkins hash of registers, modulo a number; 4 bytes in the byte order of the host.
    Hash {
        /// First register.
        source: Register,
        /// Length, bytes.
        length: u32,
        /// Results are below this.
        modulus: u32,
        /// Destination.
        register: Register,
    },
    /// Replaces the flow's source by the address in a register.
    SourceNat {
        /// `true` for IPv4.
        is_ipv4: bool,
        /// Register of the address.
        register: Register,
    },
    /// Replaces the flow's source by the address of the interface.
    Masquerade,
    /// Ends the rule.
    Verdict(Verdict),
}
