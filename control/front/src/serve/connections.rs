//! Open connections, and the choice of the one to close when a bound is reached.
//!
//! A connection counts for its client network until it carries a call with a valid token, and then
//! for that token. Both are bounded. A new connection always finds a place while connections without
//! a token exist: the network with the most of them loses its least active one.
//!
//! Invariant: a connection of a token with a running call is never closed to make room.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use proto_bounds::network;

use super::connection::{Connection, lock};
use super::connection_limits::ConnectionLimits;
use super::connection_table::{ConnectionOwner, ConnectionTable};

/// All open connections of a listener.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) limits: ConnectionLimits,
    pub(super) open: Mutex<ConnectionTable>,
}

/// The place of an open connection, released on drop.
#[derive(Debug)]
pub(super) struct OpenConnection(Arc<Connection>);

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            open: Mutex::default(),
        })
    }

    /// Takes a place for a connection from this address. If a bound is reached, another connection
    /// is closed for it. `None` means that every connection belongs to a token and runs a call.
    pub(super) fn open(self: &Arc<Self>, address: IpAddr) -> Option<OpenConnection> {
        let owner = ConnectionOwner::Network(network(address));
        let mut open = lock(&self.open);
        let its = open.of.get(&owner).map_or(0, Vec::len);
        if its >= self.limits.strangers_of_one_network {
            open.end_one_of(&owner, true);
        } else if open.strangers >= self.limits.strangers {
            open.end_a_strangers();
        }
        let has_room = open.all < self.limits.all || open.end_a_strangers() || open.end_an_idle();
        if !has_room {
            return None;
        }
        open.last += 1;
        let connection = Arc::new(Connection::new(open.last, Arc::clone(self), owner.clone()));
        open.add(owner, Arc::clone(&connection));
        Some(OpenConnection(connection))
    }
}

impl OpenConnection {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }

    /// Returns when the connection must be closed: to make room, or because a connection without a
    /// token was idle for too long.
    pub(super) async fn over(&self) -> &'static str {
        tokio::select! {
            () = self.0.ended.cancelled() => "closed to make room",
            () = self.0.overdue() => "idle without a token",
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // The owner is read under the lock: a call that still runs may change it.
        let mut open = lock(&self.0.all.open);
        let owner = lock(&self.0.activity).owner.clone();
        drop(open.remove(&owner, self.0.number));
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
