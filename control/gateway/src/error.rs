//! The reasons for which a gateway does not start.

use std::io;
use std::net::SocketAddr;

use control_pki::PkiError;
use control_store::StoreError;

/// A gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The UDP socket could not be bound.
    #[error("mesh endpoint {bind}")]
    Bind {
        /// The address of the configuration.
        bind: SocketAddr,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// QUIC cannot be spoken with the certificate.
    #[error("TLS of the mesh endpoint")]
    Tls(#[source] io::Error),
    /// The authority made no certificate for this node.
    #[error("certificate of the mesh endpoint")]
    Pki(#[from] PkiError),
    /// The store could not be read.
    #[error("state")]
    Store(#[from] StoreError),
}
