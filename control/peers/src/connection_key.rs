//! Destination of a connection to another control node, and its errors.

use std::io;

use quinn::ConnectionError;

/// Destination and purpose of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionKey {
    pub(crate) node: u64,
    pub(crate) address: String,
    /// `true` for snapshots, which have a connection of their own.
    pub(crate) is_bulk: bool,
}

/// Explains a broken connection to the operator.
pub(crate) fn broken(key: &ConnectionKey, error: ConnectionError) -> io::Error {
    let ConnectionKey { node, address, .. } = key;
    let (kind, message) = match &error {
        // 0x100 to 0x1ff are TLS alerts (RFC 9001): one of both certificates was refused.
        ConnectionError::TransportError(e) if u64::from(e.code) & !0xff == 0x100 => (
            io::ErrorKind::PermissionDenied,
            format!(
                "the node at {address} is not node {node} of this cluster, or does not accept \
                 this node as a member: {}. Compare the peer addresses: metalmesh cluster status",
                e.reason
            ),
        ),
        ConnectionError::ApplicationClosed(close) => (
            io::ErrorKind::ConnectionRefused,
            format!(
                "node {node} at {address} ended the connection: {}",
                String::from_utf8_lossy(&close.reason)
            ),
        ),
        ConnectionError::ConnectionClosed(close) => (
            io::ErrorKind::ConnectionRefused,
            format!("node {node} at {address} refused: {close}"),
        ),
        other => (
            io::ErrorKind::NotConnected,
            format!("node {node} at {address}: {other}"),
        ),
    };
    io::Error::new(kind, message)
}
