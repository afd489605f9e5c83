//! The places that one connection occupies.

use std::net::Ipv4Addr;

use proto_bounds::Place;
use tokio::sync::OwnedSemaphorePermit;

/// The place of a connection among all connections and among those of its address. Dropping it
/// frees both.
pub(super) struct ConnectionSlot {
    pub(super) _all: OwnedSemaphorePermit,
    pub(super) _of_address: Place<Ipv4Addr>,
}
