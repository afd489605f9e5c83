//! Transitions of networks, addresses and numbers.

pub(crate) mod child_network;
pub(crate) mod ip;
pub(crate) mod network;
pub(crate) mod network_rules;
pub(crate) mod next_address;
pub(crate) mod pool;
pub(crate) mod update_rules;
