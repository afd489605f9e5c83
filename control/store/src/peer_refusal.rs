//! Refusals among members: the caller of a channel belongs elsewhere.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Version of the frames among members, see `wire`. A member with another version is turned away.
pub(crate) const VERSION: u32 = 2;

/// The reason why a member turns another one away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PeerRefusal {
    /// The caller belongs to another cluster.
    #[error(
        "node {from} belongs to cluster {theirs}, this node to cluster {ours}: it must be joined \
         to this cluster with an empty data directory, or not at all"
    )]
    OtherCluster {
        /// The caller.
        from: u64,
        /// Id of the caller's cluster.
        theirs: Uuid,
        /// Id of the cluster of the called node.
        ours: Uuid,
    },
    /// Another node than the caller meant answers at this address.
    #[error("node {wanted} was called, but node {ours} answers here: correct the peer address")]
    OtherNode {
        /// The node that the caller meant to reach.
        wanted: u64,
        /// The node that answered.
        ours: u64,
    },
    /// The caller's certificate names another node than its hello.
    #[error("the certificate is node {certified}'s, but the caller says that it is node {said}")]
    OtherSender {
        /// The node in the certificate.
        certified: u64,
        /// The node in the hello.
        said: u64,
    },
    /// The caller speaks another version of the protocol.
    #[error("node {from} speaks version {theirs} of the peers' protocol, this node {VERSION}")]
    Version {
        /// The caller.
        from: u64,
        /// The version that it speaks.
        theirs: u32,
    },
    /// The called node has stopped after a fatal error.
    #[error("node {node} stopped: {reason}")]
    Stopped {
        /// The called node.
        node: u64,
        /// The fatal error.
        reason: String,
    },
}
