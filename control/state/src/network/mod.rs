//! Networks, addresses, and the pools of numbers: VRF ids, AS numbers, prefixes, addresses.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod ipam;
pub(crate) mod read;
