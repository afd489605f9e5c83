use std::collections::BTreeMap;

/// The value of a set's element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// A member.
    Member,
    /// A key that leads to a counter.
    Counter(String),
    /// A key that leads to data.
    Data(Vec<u8>),
}

/// The layout of a set. It never changes while the set exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetSpec {
    /// Type of the key, by nft's numbers; only `nft list` uses it.
    pub key_type: u32,
    /// Length of the key, bytes.
    pub key_len: u32,
    /// `true` if elements lead to counters.
    pub has_counters: bool,
    /// Type of the data by nft's numbers, if elements lead to data.
    pub data_type: Option<u32>,
    /// Length of the data, bytes; 0 without data.
    pub data_len: u32,
    /// `true` if each element has a timeout, after which the kernel removes it. Such elements are
    /// learned, or of packets, and not compiled: a plan neither adds nor removes them.
    pub has_timeout: bool,
    /// Most elements of a set that packets add elements to. `None` for a set that only the agent fills.
    pub size_max: Option<u32>,
    /// Time after the last packet of an element that a packet added, until the kernel removes it,
    /// milliseconds; 0 in other sets.
    pub lifetime_ms: u64,
}

/// A set or a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NftSet {
    /// Layout.
    pub spec: SetSpec,
    /// Elements by key.
    pub elements: BTreeMap<Vec<u8>, Element>,
}

impl SetSpec {
    /// nft's numbers of the types in our keys.
    pub const IPV4: u32 = 7;
    /// IPv6 address.
    pub const IPV6: u32 = 8;
    /// IP protocol.
    pub const PROTOCOL: u32 = 12;
    /// Port.
    pub const PORT: u32 = 13;
    /// Type of an ICMP packet.
    pub const ICMP_TYPE: u32 = 14;
    /// Type of an ICMPv6 packet.
    pub const ICMP6_TYPE: u32 = 29;
    /// Packet mark: a number in the byte order of the host.
    pub const MARK: u32 = 19;
    /// Direction of a packet in its flow.
    pub const CT_DIRECTION: u32 = 27;
    /// Name of an interface.
    pub const INTERFACE: u32 = 41;

    /// A plain set.
    #[must_use]
    pub fn members(key_type: u32, key_len: u32) -> Self {
        Self {
            key_type,
            key_len,
            has_counters: false,
            data_type: None,
            data_len: 0,
            has_timeout: false,
            size_max: None,
            lifetime_ms: 0,
        }
    }

    /// A set of at most `size_max` elements, which packets add. Each is removed `lifetime_ms` after its
    /// last packet.
    #[must_use]
    pub fn of_packets(key_type: u32, key_len: u32, size_max: u32, lifetime_ms: u64) -> Self {
        Self {
            has_timeout: true,
            size_max: Some(size_max),
            lifetime_ms,
            ..Self::members(key_type, key_len)
        }
    }
}
