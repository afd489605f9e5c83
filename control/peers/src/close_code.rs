//! QUIC application error codes with which a node ends a connection.

/// The node stops.
pub(crate) const STOPPING: u32 = 1;
/// The certificate of the caller has expired.
pub(crate) const EXPIRED: u32 = 2;
/// The caller was removed from the cluster.
pub(crate) const REMOVED: u32 = 3;
