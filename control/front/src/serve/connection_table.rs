//! The open connections by owner, and the choice of the one to close.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::connection::Connection;

/// The caller that a connection counts for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionOwner {
    /// The client network, until a call with a valid token came.
    Network(IpAddr),
    /// A valid token.
    Token(Arc<str>),
}

/// The open connections by owner.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    /// Number of the newest connection.
    pub(super) last: u64,
    /// Open connections.
    pub(super) all: usize,
    /// Open connections that count for a network.
    pub(super) strangers: usize,
    /// Oldest first in each list.
    pub(super) of: BTreeMap<ConnectionOwner, Vec<Arc<Connection>>>,
}

impl ConnectionTable {
    /// Adds a new connection to its owner's list.
    pub(super) fn add(&mut self, owner: ConnectionOwner, connection: Arc<Connection>) {
        self.all += 1;
        if matches!(owner, ConnectionOwner::Network(_)) {
            self.strangers += 1;
        }
        self.of.entry(owner).or_default().push(connection);
    }

    /// Removes a connection. `None` means that the owner has none of this number.
    pub(super) fn remove(
        &mut self,
        owner: &ConnectionOwner,
        number: u64,
    ) -> Option<Arc<Connection>> {
        let its = self.of.get_mut(owner)?;
        let at = its.iter().position(|open| open.number == number)?;
        let removed = its.remove(at);
        if its.is_empty() {
            self.of.remove(owner);
        }
        self.all -= 1;
        if matches!(owner, ConnectionOwner::Network(_)) {
            self.strangers -= 1;
        }
        Some(removed)
    }

    /// Ends the owner's oldest connection without a running call. If there is none, ends its oldest
    /// connection only if `any`. Returns `true` if a connection was ended.
    pub(super) fn end_one_of(&mut self, owner: &ConnectionOwner, any: bool) -> bool {
        let Some(its) = self.of.get(owner) else {
            return false;
        };
        let idle = its.iter().find(|open| open.is_idle());
        let chosen = idle.or_else(|| its.first().filter(|_| any));
        let Some(number) = chosen.map(|open| open.number) else {
            return false;
        };
        if let Some(removed) = self.remove(owner, number) {
            removed.ended.cancel();
        }
        true
    }

    /// Ends a connection of the network that has the most. Returns `false` if no network has one.
    pub(super) fn end_a_strangers(&mut self) -> bool {
        let strangers = self.of.iter();
        let strangers = strangers.filter(|(owner, _)| matches!(owner, ConnectionOwner::Network(_)));
        let most = strangers.max_by_key(|(_, its)| its.len());
        let Some(owner) = most.map(|(owner, _)| owner.clone()) else {
            return false;
        };
        self.end_one_of(&owner, true)
    }

    /// Ends a connection without a running call, of the owner with the most connections among those
    /// that have one. Returns `false` if a call runs on every connection.
    pub(super) fn end_an_idle(&mut self) -> bool {
        let idle = self.of.iter();
        let idle = idle.filter(|(_, its)| its.iter().any(|open| open.is_idle()));
        let most = idle.max_by_key(|(_, its)| its.len());
        let Some(owner) = most.map(|(owner, _)| owner.clone()) else {
            return false;
        };
        self.end_one_of(&owner, false)
    }
}
