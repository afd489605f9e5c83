//! Numbers of `linux/netfilter/nf_tables.h` and `linux/netfilter/nfnetlink.h`.

pub(super) const SUBSYSTEM: u16 = 10;
pub(super) const BATCH_BEGIN: u16 = 0x10;
pub(super) const BATCH_END: u16 = 0x11;
/// Attribute of the begin of a batch: the generation that it was made for.
pub(super) const BATCH_GENERATION: u16 = 1;
/// Family `inet`: IPv4 and IPv6.
pub(super) const FAMILY_INET: u8 = 1;

/// Messages of nftables.
pub(super) mod message {
    pub(crate) const NEW_TABLE: u16 = 0;
    pub(crate) const GET_TABLE: u16 = 1;
    pub(crate) const DELETE_TABLE: u16 = 2;
    pub(crate) const NEW_CHAIN: u16 = 3;
    pub(crate) const GET_CHAIN: u16 = 4;
    pub(crate) const DELETE_CHAIN: u16 = 5;
    pub(crate) const NEW_RULE: u16 = 6;
    pub(crate) const GET_RULE: u16 = 7;
    pub(crate) const DELETE_RULE: u16 = 8;
    pub(crate) const NEW_SET: u16 = 9;
    pub(crate) const GET_SET: u16 = 10;
    pub(crate) const DELETE_SET: u16 = 11;
    pub(crate) const NEW_ELEMENT: u16 = 12;
    pub(crate) const GET_ELEMENT: u16 = 13;
    pub(crate) const DELETE_ELEMENT: u16 = 14;
    pub(crate) const NEW_GENERATION: u16 = 15;
    pub(crate) const GET_GENERATION: u16 = 16;
    pub(crate) const NEW_OBJECT: u16 = 18;
    pub(crate) const GET_OBJECT: u16 = 19;
    pub(crate) const DELETE_OBJECT: u16 = 20;
    /// As `DELETE_ELEMENT`, but an element that is missing is no error. Linux 6.3.
    pub(crate) const DESTROY_ELEMENT: u16 = 30;
}

/// The element of every list.
pub(super) const LIST_ELEMENT: u16 = 1;
/// Type of counters among the objects.
pub(super) const OBJECT_COUNTER: u32 = 1;
/// Value and verdict of a datum.
pub(super) const DATA_VALUE: u16 = 1;
pub(super) const DATA_VERDICT: u16 = 2;
pub(super) const VERDICT_CODE: u16 = 1;
pub(super) const VERDICT_CHAIN: u16 = 2;

/// Flags of sets.
pub(super) const SET_ANONYMOUS: u32 = 0x01;
pub(super) const SET_MAP: u32 = 0x08;
pub(super) const SET_TIMEOUT: u32 = 0x10;
/// Packets add elements.
pub(super) const SET_EVAL: u32 = 0x20;
pub(super) const SET_OBJECT: u32 = 0x40;
/// Attributes of a set: its description with the most elements, and the lifetime of elements that
/// packets add, milliseconds.
pub(super) const SET_DESCRIPTION: u16 = 9;
pub(super) const DESCRIPTION_SIZE: u16 = 1;
pub(super) const SET_LIFETIME: u16 = 11;
/// Attributes of an element: its whole lifetime and the rest of it, milliseconds.
pub(super) const ELEMENT_TIMEOUT: u16 = 4;
pub(super) const ELEMENT_EXPIRATION: u16 = 5;
