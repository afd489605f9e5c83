//! A lease, and the reasons why none can be given.

use std::net::Ipv4Addr;

use proto_types::MacAddr;

/// The pool of a lease. A network has two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    Machines,
    Bmcs,
}

/// An address given to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub mac: MacAddr,
    pub address: Ipv4Addr,
    /// Expiry, milliseconds since the epoch.
    pub expires_ms: u64,
    pub pool: Pool,
}

/// The reason why no address can be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    #[error("all addresses of the pool are taken")]
    Exhausted,
    #[error("address {0} is outside the pool or held by another client")]
    NotYours(Ipv4Addr),
}
