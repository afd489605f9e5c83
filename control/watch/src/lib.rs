//! Watches: streams of what changes, each limited to what its caller may see at every moment.
//!
//! A watch is a position in the store's history of changes. `scope` selects the objects that it
//! shows, [`Rights`](control_gate::Rights) checks that its caller may still read them, `encode`
//! makes messages (once for all watches that show them), `view` turns changes into what one watch
//! shows, and `watcher` runs it.
//!
//! Invariants:
//! - a watch never shows more than the matching read would at that moment: rights are checked again
//!   before each message that shows an object, and after each change of a token, a tenant or a
//!   project; when they differ from those at the start, the watch ends;
//! - an object that leaves a watch's view is reported as deleted;
//! - watches are bounded, in all and for each user; a slow watch holds a slot, not memory.
//!
//! Entry point: [`open`].

mod encode;
mod kinds;
mod limits;
mod scope;
mod slots;
mod view;
mod watcher;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use control_gate::refusal::refused;
use control_state::ErrorCode;
use futures::Stream;
use proto_public::metalmesh::admin::v1::WatchEvent;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use slots::{OpenWatches, WatchSlot};

pub use limits::WatchLimits;
pub use scope::Scope;
pub use watcher::{WatchQuery, open};

/// The response stream of a watch.
pub type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEvent, Status>> + Send>>;

/// The watches of a node; cheap to clone.
#[derive(Debug, Clone)]
pub struct Watches {
    limits: WatchLimits,
    stop: CancellationToken,
    open: Arc<Mutex<OpenWatches>>,
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
