//! Watches: streams of what changes, each limited to what its caller may see at every moment.
//!
//! A watch is a place in the store's history of changes. `scope` says what it shows,
//! [`Rights`](control_gate::Rights) whether its caller still may see that, `encode` makes messages
//! (once, for all watches that show them), `watcher` puts it together.
//!
//! Invariants:
//! - nothing is told that the matching read would not show at that moment: rights are looked at
//!   again before each message that shows something, and whenever a token, a tenant or a project
//!   changed; when they are less or other than at the beginning, the watch ends;
//! - what leaves a watch's view is told as deleted;
//! - watches are bounded, in all and for each user, and a slow one holds a place, not memory.

mod encode;
mod kinds;
mod scope;
mod watcher;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use control_gate::refusal::refused;
use control_state::ErrorCode;
use futures::Stream;
use proto_public::metalmesh::admin::v1::WatchEvent;
use tokio_util::sync::CancellationToken;
use tonic::Status;

pub use scope::Scope;
pub use watcher::{Ask, open};

/// The response stream of a watch.
pub type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEvent, Status>> + Send>>;

/// Bounds of watches.
#[derive(Debug, Clone, Copy)]
pub struct WatchLimits {
    /// Watches at the same time on one node.
    pub watches: usize,
    /// Watches of one user at the same time on one node.
    pub per_user: usize,
    /// How long a caller may take to take one message before its watch is ended.
    pub stall: Duration,
    /// Interval after which an idle watch sends a bookmark with its revision.
    pub bookmark: Duration,
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self {
            watches: 8192,
            per_user: 2048,
            stall: Duration::from_secs(60),
            bookmark: Duration::from_secs(10),
        }
    }
}

/// The watches of a node; cheap to clone.
#[derive(Debug, Clone)]
pub struct Watches {
    limits: WatchLimits,
    stop: CancellationToken,
    open: Arc<Mutex<OpenWatches>>,
}

#[derive(Debug, Default)]
struct OpenWatches {
    all: usize,
    users: BTreeMap<String, usize>,
}

impl Watches {
    /// Watches that end when `stop` is cancelled.
    pub fn new(limits: WatchLimits, stop: CancellationToken) -> Self {
        Self {
            limits,
            stop,
            open: Arc::default(),
        }
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all
    }

    /// Takes a slot for a watch of this user.
    fn place(&self, user: &str) -> Result<WatchSlot, Status> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.users.get(user).copied().unwrap_or_default();
        let limit = if own >= self.limits.per_user {
            Some(("of this user", self.limits.per_user))
        } else if open.all >= self.limits.watches {
            Some(("on this node", self.limits.watches))
        } else {
            None
        };
        if let Some((whose, limit)) = limit {
            let message = format!("{limit} watches {whose} are open, which is the limit");
            return Err(refused(ErrorCode::TooMany, message));
        }
        open.all += 1;
        open.users.insert(user.to_owned(), own + 1);
        Ok(WatchSlot {
            open: Arc::clone(&self.open),
            user: user.to_owned(),
        })
    }
}

/// A slot among the open watches, released on drop.
#[derive(Debug)]
struct WatchSlot {
    open: Arc<Mutex<OpenWatches>>,
    user: String,
}

impl Drop for WatchSlot {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        if let Some(own) = open.users.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                open.users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_limits_and_come_back() {
        let limits = WatchLimits {
            watches: 3,
            per_user: 2,
            ..WatchLimits::default()
        };
        let watches = Watches::new(limits, CancellationToken::new());
        let first = watches.place("acme").unwrap();
        let _second = watches.place("acme").unwrap();
        let refused = watches.place("acme").unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert!(refused.message().contains("of this user"), "{refused}");
        let _third = watches.place("rival").unwrap();
        let refused = watches.place("rival").unwrap_err();
        assert!(refused.message().contains("on this node"), "{refused}");
        drop(first);
        assert!(watches.place("acme").is_ok());
    }
}
