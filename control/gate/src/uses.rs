//! Records when tokens were last used, in the background and at most once per interval.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use control_authz::{Permit, SystemActor};
use control_state::{Command, Token, TouchToken};
use control_store::Store;
use proto_types::{Timestamp, TokenId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Least interval between two writes for one token, milliseconds. The state applies the same bound.
const TOUCH_MS: u64 = 5 * 60_000;
/// Queue length. A use that finds the queue full is dropped; the next call of the token queues
/// again.
const QUEUE_MAX: usize = 256;
/// Most tokens remembered as queued lately. Uses of further tokens are dropped.
const KNOWN_MAX: usize = 10_000;

/// Queues uses of tokens.
#[derive(Debug)]
pub struct Uses {
    queue: mpsc::Sender<TokenId>,
    /// Tokens queued lately. The state shows the write only a moment later, and calls in between
    /// must not queue it again.
    sent: Mutex<BTreeMap<TokenId, Timestamp>>,
}

/// Writes queued uses to the state; see [`UseWriter::run`].
#[derive(Debug)]
pub struct UseWriter {
    queue: mpsc::Receiver<TokenId>,
    store: Store,
}

impl Uses {
    /// The queue and the writer that drains it.
    pub fn new(store: Store) -> (Self, UseWriter) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let uses = Self {
            queue: sender,
            sent: Mutex::default(),
        };
        (uses, UseWriter { queue, store })
    }

    /// Notes that a valid token was used.
    pub fn note(&self, token: &Token, now: Timestamp) {
        if token
            .last_used
            .is_some_and(|used| now.since_ms(used) < TOUCH_MS)
        {
            return;
        }
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent
            .get(&token.id)
            .is_some_and(|at| now.since_ms(*at) < TOUCH_MS)
        {
            return;
        }
        if sent.len() >= KNOWN_MAX {
            sent.retain(|_, at| now.since_ms(*at) < TOUCH_MS);
        }
        if sent.len() < KNOWN_MAX && self.queue.try_send(token.id).is_ok() {
            sent.insert(token.id, now);
        }
    }
}

impl UseWriter {
    /// Runs until stopped. Uses still queued then are dropped: a lost timestamp costs less than a
    /// slow shutdown.
    pub async fn run(mut self, stop: CancellationToken) {
        let permit = Permit::system(SystemActor::Gate);
        loop {
            let id = tokio::select! {
                () = stop.cancelled() => return,
                id = self.queue.recv() => match id {
                    Some(id) => id,
                    None => return,
                },
            };
            let command = Command::new(self.store.now(), "metalmeshd", TouchToken { id });
            if let Err(error) = self.store.propose(&permit, &command).await {
                tracing::debug!(token = %id, error = %error, "the use of a token was not recorded");
            }
        }
    }
}
