//! Which certificates are revoked, and whose keys are to be replaced, as sessions ask for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use control_state::{CaPhase, CaRotation, Certificate, Change, Identity, Kind, Record, Tables};
use control_store::{Store, StoreError, Subscription, WatchEvent};
use parking_lot::RwLock;
use proto_identity::PeerIdentity;
use proto_link::Revocations;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::generations::rotation;

/// When the authority is replaced in a hurry, agents renew over so long a time.
const FORCED_SPREAD: Duration = Duration::from_secs(15);

/// The serial numbers of revoked certificates that have not ended yet, and the identities that
/// are to have new keys; follows the state.
#[derive(Debug)]
pub struct Revoked {
    known: RwLock<Known>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    serials: BTreeSet<String>,
    /// By SPIFFE id: SHA-256 of the key that is to go, hex, and over how long all spread.
    due: BTreeMap<String, (String, Duration)>,
    /// Everybody is to have a certificate of this generation of the authority now.
    wanted: u32,
}

/// Of a replacement of the authority that is hurried, its new generation.
fn wanted(rotation: &CaRotation) -> u32 {
    let hurries = rotation.is_forced && rotation.phase != CaPhase::Done;
    if hurries { rotation.to } else { 0 }
}

impl Known {
    fn of(tables: &Tables) -> Self {
        let mut known = Self {
            wanted: rotation(tables).map_or(0, |it| wanted(it)),
            ..Self::default()
        };
        for certificate in tables.all::<Certificate>() {
            known.certificate(certificate);
        }
        for identity in tables.all::<Identity>() {
            known.identity(identity);
        }
        known
    }

    /// Whether that is news to sessions.
    fn certificate(&mut self, it: &Certificate) -> bool {
        it.revoked_at.is_some() && self.serials.insert(it.serial.clone())
    }

    /// Whether that is news to sessions.
    fn identity(&mut self, it: &Identity) -> bool {
        let spread = if it.rotate_since.is_some() {
            Some(Duration::ZERO)
        } else {
            (it.authority < self.wanted).then_some(FORCED_SPREAD)
        };
        if let Some(spread) = spread.filter(|_| it.revoked_at.is_none()) {
            let due = (it.key.hex(), spread);
            return self.due.insert(it.id.clone(), due.clone()) != Some(due);
        }
        self.due.remove(&it.id);
        false
    }

    /// Whether that is news to sessions.
    fn take(&mut self, change: &Change) -> bool {
        match &change.record {
            Some(Record::Certificate(it)) => self.certificate(it),
            Some(Record::Identity(it)) => self.identity(it),
            // Forgotten because it has ended: sessions of it are over.
            None if change.kind == Kind::Certificate => {
                self.serials.remove(&change.key);
                false
            }
            None if change.kind == Kind::Identity => {
                self.due.remove(&change.key);
                false
            }
            _ => false,
        }
    }
}

impl Revoked {
    /// Reads the state; then [`Revoked::follow`] it.
    pub fn open(store: &Store) -> Result<(Arc<Self>, Subscription<Change>), StoreError> {
        let events = store.watch();
        let this = Arc::new(Self {
            known: RwLock::new(store.read_local(Known::of)?),
            changes: watch::Sender::new(0),
        });
        Ok((this, events))
    }

    /// Follows the state until `stop`, or until the store is shut down.
    pub async fn follow(
        self: Arc<Self>,
        store: Store,
        mut events: Subscription<Change>,
        stop: CancellationToken,
    ) {
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return,
                event = events.next() => event,
            };
            let changed = match event {
                // What is wanted of all is looked at anew.
                Some(WatchEvent::Changed { changes, .. })
                    if changes.iter().any(|it| it.kind == Kind::CaRotation) =>
                {
                    self.resync(&store)
                }
                Some(WatchEvent::Changed { changes, .. }) => self.take(&changes),
                Some(WatchEvent::Resync) => self.resync(&store),
                None => return,
            };
            if changed {
                self.changes.send_modify(|n| *n += 1);
            }
        }
    }

    fn take(&self, changes: &[Change]) -> bool {
        let matters = |it: &&Change| matches!(it.kind, Kind::Certificate | Kind::Identity);
        if !changes.iter().any(|it| matters(&it)) {
            return false;
        }
        let mut known = self.known.write();
        // Each of them counts, so no short cut.
        let news = changes.iter().filter(matters).map(|it| known.take(it));
        news.fold(false, |any, one| any | one)
    }

    fn resync(&self, store: &Store) -> bool {
        match store.read_local(Known::of) {
            Ok(fresh) => {
                *self.known.write() = fresh;
                true
            }
            Err(e) => {
                warn!(error = %e, "revocations not read");
                false
            }
        }
    }
}

impl Revocations for Revoked {
    fn is_revoked(&self, peer: &PeerIdentity) -> bool {
        let known = self.known.read();
        known.serials.contains(&peer.serial)
    }

    fn is_due(&self, peer: &PeerIdentity) -> Option<Duration> {
        let known = self.known.read();
        if known.due.is_empty() {
            return None;
        }
        let (key, spread) = known.due.get(&peer.id.to_string())?;
        (*key == peer.fingerprint).then_some(*spread)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
