//! Snapshots on their way between members.

pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod wire;
