//! One open connection: its owner, its running calls and its deadline.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection_table::ConnectionOwner;
use super::connections::Connections;

/// A handle on one connection, for the calls on it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) number: u64,
    pub(super) all: Arc<Connections>,
    opened: Instant,
    pub(super) activity: Mutex<Activity>,
    /// Cancelled when the connection must be closed to make room.
    pub(super) ended: CancellationToken,
}

/// The owner and the calls of a connection.
#[derive(Debug)]
pub(super) struct Activity {
    pub(super) owner: ConnectionOwner,
    /// Calls whose answer has not been sent whole.
    running: usize,
    /// `true` if the connection has carried a request.
    has_called: bool,
    /// When the last call ended, or else when the connection was opened.
    quiet_since: Instant,
}

/// A running call on a connection. The call ends on drop.
#[derive(Debug)]
pub(super) struct RunningCall(Arc<Connection>);

impl Connection {
    /// A connection that was opened now.
    pub(super) fn new(number: u64, all: Arc<Connections>, owner: ConnectionOwner) -> Self {
        let now = Instant::now();
        Self {
            number,
            all,
            opened: now,
            activity: Mutex::new(Activity {
                owner,
                running: 0,
                has_called: false,
                quiet_since: now,
            }),
            ended: CancellationToken::new(),
        }
    }

    /// `true` if no call runs.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.activity).running == 0
    }

    /// Counts the connection for this valid token from now on. No change if it counts for a token
    /// already, or if the token has its most connections and a call runs on each.
    pub(crate) fn belongs_to(self: &Arc<Self>, token: &Arc<str>) {
        if matches!(lock(&self.activity).owner, ConnectionOwner::Token(_)) {
            return;
        }
        // Lock order: all connections, then the activity of one. The other order could deadlock.
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

    /// Counts a call whose request head has arrived.
    pub(super) fn call(self: &Arc<Self>) -> RunningCall {
        let mut activity = lock(&self.activity);
        activity.running += 1;
        activity.has_called = true;
        drop(activity);
        RunningCall(Arc::clone(self))
    }

    /// Deadline of the next request on a connection without a token; `Err` with the pause until the
    /// next check while a call runs. `None` means that the connection belongs to a token.
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
                // The first byte and the TLS handshake each have `first_byte`, before the time for
                // the first request begins.
                let first = limits.first_byte * 2 + limits.first_request;
                Some(Ok(self.opened + first))
            }
        }
    }

    /// Returns at the deadline of a connection without a token; never for one with a token.
    pub(super) async fn overdue(&self) {
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

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.activity);
        activity.running = activity.running.saturating_sub(1);
        activity.quiet_since = Instant::now();
    }
}

/// Locks a table or an activity. A panic of another holder leaves both consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
