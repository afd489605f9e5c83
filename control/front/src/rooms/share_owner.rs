//! The caller that a call counts for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use proto_bounds::network;

/// The caller in whose share a call is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShareOwner {
    /// A valid token.
    Token(Arc<str>),
    /// All callers without a valid token in this client network.
    Network(IpAddr),
}

impl ShareOwner {
    /// The token, or else the network that the call comes from.
    pub(crate) fn of(token: Option<Arc<str>>, peer: Option<SocketAddr>) -> Self {
        let address = peer.map_or_else(|| Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip());
        token.map_or_else(|| Self::Network(network(address)), Self::Token)
    }
}
