//! When tokens were last used: written down now and then, beside the calls.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use control_authz::{Permit, SystemActor};
use control_state::{Command, Token, TouchToken};
use control_store::Store;
use proto_types::{Timestamp, TokenId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A use is written down again after this, milliseconds; the state has the same bound.
const TOUCH_MS: u64 = 5 * 60_000;
/// Uses that may wait; more are left for the next call.
const QUEUE_MAX: usize = 256;
/// Tokens that are remembered as written down.
const KNOWN_MAX: usize = 10_000;

/// Where uses go.
#[derive(Debug)]
pub struct Uses {
    queue: mpsc::Sender<TokenId>,
    /// What was sent on lately: the state says so a moment later.
    sent: Mutex<BTreeMap<TokenId, Timestamp>>,
}

/// Writes them down; see [`UseWriter::run`].
#[derive(Debug)]
pub struct UseWriter {
    queue: mpsc::Receiver<TokenId>,
    store: Store,
}

impl Uses {
    /// Uses and the writer that has to run for them.
    pub fn new(store: Store) -> (Self, UseWriter) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let uses = Self {
            queue: sender,
            sent: Mutex::default(),
        };
        (uses, UseWriter { queue, store })
    }

    /// A valid token was used.
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
    /// Runs until stopped; what waits then is not worth a wait.
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
                tracing::debug!(token = %id, error = %error, "a token's use was not written down");
            }
        }
    }
}
