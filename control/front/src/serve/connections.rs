//! Open connections, and the choice of the one to close when a bound is reached.
//!
//! A connection counts for its client network until it carries a call with a valid token, and then
//! for that token. Both are bounded. A new connection always finds a place while connections without
//! a token exist: the network with the most of them loses its least active one.
//!
//! Invariant: a connection of a token with a running call is never closed to make room.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proto_bounds::network;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Bounds on connections, and timeouts of those without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Most open connections.
    pub all: usize,
    /// Most open connections that have not carried a call with a valid token.
    pub strangers: usize,
    /// The same bound for one IPv4 address or one IPv6 /64.
    pub strangers_of_one_network: usize,
    /// Most open connections of one token.
    pub of_one_token: usize,
    /// Time limit for the first byte, and again from it to the end of the TLS handshake.
    pub first_byte: Duration,
    /// Time limit for the head of the first request, after the TLS handshake.
    pub first_request: Duration,
    /// Longest time without a call on a connection without a token.
    pub stranger_idle: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            all: 4096,
            strangers: 1024,
            strangers_of_one_network: 256,
            of_one_token: 256,
            first_byte: Duration::from_secs(10),
            first_request: Duration::from_secs(10),
            stranger_idle: Duration::from_secs(30),
        }
    }
}

/// All open connections of a listener.
#[derive(Debug)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    open: Mutex<ConnectionTable>,
}

/// A handle on one connection, for the calls on it.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    all: Arc<Connections>,
    opened: Instant,
    activity: Mutex<Activity>,
    /// Cancelled when the connection must make room.
    ended: CancellationToken,
}

#[derive(Debug)]
struct Activity {
    owner: ConnectionOwner,
    /// Calls whose answer has not been sent whole.
    running: usize,
    has_called: bool,
    /// When the last of them ended.
    quiet_since: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionOwner {
    Network(IpAddr),
    Token(Arc<str>),
}

/// Oldest first in each list.
#[derive(Debug, Default)]
struct ConnectionTable {
    last: u64,
    all: usize,
    strangers: usize,
    of: BTreeMap<ConnectionOwner, Vec<Arc<Connection>>>,
}

/// A connection's place; given back when dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(Arc<Connection>);

/// A call that runs; over when dropped.
#[derive(Debug)]
pub(super) struct RunningCall(Arc<Connection>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            open: Mutex::default(),
        })
    }

    /// A place for a connection from this address, if need be another one's. `None` when tokens
    /// have all places and a call runs on each.
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
        let now = Instant::now();
        let connection = Arc::new(Connection {
            number: open.last,
            all: Arc::clone(self),
            opened: now,
            activity: Mutex::new(Activity {
                owner: owner.clone(),
                running: 0,
                has_called: false,
                quiet_since: now,
            }),
            ended: CancellationToken::new(),
        });
        open.add(owner, Arc::clone(&connection));
        Some(OpenConnection(connection))
    }
}

impl ConnectionTable {
    fn add(&mut self, owner: ConnectionOwner, connection: Arc<Connection>) {
        self.all += 1;
        if matches!(owner, ConnectionOwner::Network(_)) {
            self.strangers += 1;
        }
        self.of.entry(owner).or_default().push(connection);
    }

    fn remove(&mut self, owner: &ConnectionOwner, number: u64) -> Option<Arc<Connection>> {
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

    /// Ends the oldest connection of an owner on which no call runs; if there is none and `any`,
    /// the oldest of all.
    fn end_one_of(&mut self, owner: &ConnectionOwner, any: bool) -> bool {
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

    /// Of the network with the most.
    fn end_a_strangers(&mut self) -> bool {
        let strangers = self.of.iter();
        let strangers = strangers.filter(|(owner, _)| matches!(owner, ConnectionOwner::Network(_)));
        let most = strangers.max_by_key(|(_, its)| its.len());
        let Some(owner) = most.map(|(owner, _)| owner.clone()) else {
            return false;
        };
        self.end_one_of(&owner, true)
    }

    /// Of the token with the most that has one without a call.
    fn end_an_idle(&mut self) -> bool {
        let idle = self.of.iter();
        let idle = idle.filter(|(_, its)| its.iter().any(|open| open.is_idle()));
        let most = idle.max_by_key(|(_, its)| its.len());
        let Some(owner) = most.map(|(owner, _)| owner.clone()) else {
            return false;
        };
        self.end_one_of(&owner, false)
    }
}

impl Connection {
    fn is_idle(&self) -> bool {
        lock(&self.activity).running == 0
    }

    /// A call with this good token came: the connection belongs to the token from now on, unless
    /// the token has as many already and a call runs on each.
    pub(crate) fn belongs_to(self: &Arc<Self>, token: &Arc<str>) {
        if matches!(lock(&self.activity).owner, ConnectionOwner::Token(_)) {
            return;
        }
        // Always in this order: all connections, then the activity of one.
        let mut open = lock(&self.all.open);
        let owner = lock(&self.activity).owner.clone();
        let of_token = ConnectionOwner::Token(Arc::clone(token));
        let its = open.of.get(&of_token).map_or(0, Vec::len);
        if its >= self.all.limits.of_one_token && !open.end_one_of(&of_token, false) {
            return;
        }
        if let Some(connection) = open.remove(&owner, self.number) {
            lock(&self.activity).owner = of_token.clone();
            open.add(of_token, connection);
        }
    }

    /// A request's head came.
    pub(super) fn call(self: &Arc<Self>) -> RunningCall {
        let mut activity = lock(&self.activity);
        activity.running += 1;
        activity.has_called = true;
        drop(activity);
        RunningCall(Arc::clone(self))
    }

    /// When a stranger must have said more; `Err` with a time to look again while a call runs.
    fn due(&self) -> Option<Result<Instant, Duration>> {
        let limits = &self.all.limits;
        let activity = lock(&self.activity);
        match activity.owner {
            ConnectionOwner::Token(_) => None,
            ConnectionOwner::Network(_) if activity.running > 0 => Some(Err(limits.stranger_idle)),
            ConnectionOwner::Network(_) if activity.has_called => {
                Some(Ok(activity.quiet_since + limits.stranger_idle))
            }
            ConnectionOwner::Network(_) => {
                // The first byte and the handshake have times of their own before.
                let first = limits.first_byte * 2 + limits.first_request;
                Some(Ok(self.opened + first))
            }
        }
    }

    /// Returns when a stranger's time is over; never for the connection of a token.
    async fn overdue(&self) {
        loop {
            match self.due() {
                None => return std::future::pending().await,
                Some(Ok(at)) if at <= Instant::now() => return,
                Some(Ok(at)) => tokio::time::sleep_until(at).await,
                Some(Err(pause)) => tokio::time::sleep(pause).await,
            }
        }
    }
}

impl OpenConnection {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }

    /// Returns when the connection must end: it makes room, or its time is over.
    pub(super) async fn over(&self) -> &'static str {
        tokio::select! {
            () = self.0.ended.cancelled() => "it makes room for another",
            () = self.0.overdue() => "a stranger's time is over",
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

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.activity);
        activity.running = activity.running.saturating_sub(1);
        activity.quiet_since = Instant::now();
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
