//! openraft behind our own seams: the log, the state machine and the transport.

pub(crate) mod config;
pub(crate) mod inbound;
pub(crate) mod log;
pub(crate) mod network;
