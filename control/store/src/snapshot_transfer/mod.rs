//! Transfer of snapshots between members.

pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod throttle;
pub(crate) mod wire;
