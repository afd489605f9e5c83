//! Adapters between openraft and the store: its settings, log and network.

pub(crate) mod config;
pub(crate) mod dialer;
pub(crate) mod inbound;
pub(crate) mod log;
pub(crate) mod network;
mod pipeline;
