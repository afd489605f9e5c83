//! Names of the files in the data directory.

/// The node's sealing key, unless the configuration names another file.
pub(crate) const SEALING_KEY: &str = "seal.key";
/// The cluster's data key, sealed by the sealing key.
pub(crate) const DATA_KEY: &str = "data.key";
/// The private key of this node among its peers.
pub(crate) const PEER_KEY: &str = "peer.key";
/// The ticket by which this node joins, unless the configuration names another file.
pub(crate) const TICKET: &str = "node.ticket";
