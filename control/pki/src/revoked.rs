//! Which certificates are revoked, as sessions ask for it.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use control_state::{Certificate, Kind, Record};
use control_store::{Event, Store, StoreError, Subscription};
use proto_identity::PeerIdentity;
use proto_link::Revocations;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// The serial numbers of revoked certificates that have not ended yet; follows the state.
#[derive(Debug)]
pub struct Revoked {
    serials: RwLock<BTreeSet<String>>,
    changes: watch::Sender<u64>,
}

impl Revoked {
    /// Reads the state; then [`Revoked::follow`] it.
    pub fn open(
        store: &Store,
    ) -> Result<(Arc<Self>, Subscription<control_state::Change>), StoreError> {
        let events = store.watch();
        let this = Arc::new(Self {
            serials: RwLock::new(read(store)?),
            changes: watch::Sender::new(0),
        });
        Ok((this, events))
    }

    /// Follows the state until `stop`, or until the store is shut down.
    pub async fn follow(
        self: Arc<Self>,
        store: Store,
        mut events: Subscription<control_state::Change>,
        stop: CancellationToken,
    ) {
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return,
                event = events.next() => event,
            };
            let changed = match event {
                Some(Event::Changed { changes, .. }) => self.take(&changes),
                Some(Event::Resync) => self.resync(&store),
                None => return,
            };
            if changed {
                self.changes.send_modify(|n| *n += 1);
            }
        }
    }

    fn take(&self, changes: &[control_state::Change]) -> bool {
        let mut changed = false;
        for change in changes.iter().filter(|c| c.kind == Kind::Certificate) {
            let mut serials = self.serials.write().unwrap_or_else(PoisonError::into_inner);
            match &change.record {
                Some(Record::Certificate(c)) if c.revoked_at.is_some() => {
                    changed |= serials.insert(c.serial.clone());
                }
                Some(_) => {}
                // Forgotten because it has ended: sessions of it are over.
                None => drop(serials.remove(&change.key)),
            }
        }
        changed
    }

    fn resync(&self, store: &Store) -> bool {
        match read(store) {
            Ok(fresh) => {
                let mut serials = self.serials.write().unwrap_or_else(PoisonError::into_inner);
                *serials = fresh;
                true
            }
            Err(e) => {
                warn!(error = %e, "revocations not read");
                false
            }
        }
    }
}

fn read(store: &Store) -> Result<BTreeSet<String>, StoreError> {
    store.read_local(|t| {
        t.all::<Certificate>()
            .filter(|c| c.revoked_at.is_some())
            .map(|c| c.serial.clone())
            .collect()
    })
}

impl Revocations for Revoked {
    fn is_revoked(&self, peer: &PeerIdentity) -> bool {
        self.serials
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&peer.serial)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
