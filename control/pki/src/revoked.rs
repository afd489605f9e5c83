//! Revoked certificates, and identities that must replace their keys, for the checks of sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use control_state::{CaPhase, CaRotation, Certificate, Change, Identity, Kind, Record, Tables};
use control_store::{ChangeEvent, Store, StoreError, Subscription};
use parking_lot::RwLock;
use proto_identity::PeerIdentity;
use proto_link::Revocations;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::generations::rotation;

/// Time over which agents spread their renewals in a forced rotation of the authority, so that they
/// do not all ask at once.
const FORCED_SPREAD: Duration = Duration::from_secs(15);

/// Serial numbers of revoked certificates that have not expired yet, and identities that must
/// replace their keys. Follows the state.
#[derive(Debug)]
pub struct Revoked {
    known: RwLock<RevokedKeys>,
    changes: watch::Sender<u64>,
}

/// The revocations of one state.
#[derive(Debug, Default)]
struct RevokedKeys {
    serials: BTreeSet<String>,
    /// Identities that must renew, by SPIFFE id: SHA-256 of the old key, hex, and the time over
    /// which renewals spread.
    due: BTreeMap<String, (String, Duration)>,
    /// Generation of the authority that every certificate must have now; 0 means any.
    wanted: u32,
}

/// The new generation of a forced rotation; 0 if the rotation is not forced, or done.
fn wanted(rotation: &CaRotation) -> u32 {
    let hurries = rotation.is_forced && rotation.phase != CaPhase::Done;
    if hurries { rotation.to } else { 0 }
}

impl RevokedKeys {
    fn of(tables: &Tables) -> Self {
        let mut known = Self {
            wanted: rotation(tables).map_or(0, |rotation| wanted(rotation)),
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

    /// Takes a certificate; `true` if sessions must be checked again.
    fn certificate(&mut self, certificate: &Certificate) -> bool {
        certificate.revoked_at.is_some() && self.serials.insert(certificate.serial.clone())
    }

    /// Takes an identity; `true` if sessions must be checked again.
    fn identity(&mut self, identity: &Identity) -> bool {
        let spread = if identity.rotate_since.is_some() {
            Some(Duration::ZERO)
        } else {
            (identity.authority < self.wanted).then_some(FORCED_SPREAD)
        };
        if let Some(spread) = spread.filter(|_| identity.revoked_at.is_none()) {
            let due = (identity.key.hex(), spread);
            return self.due.insert(identity.id.clone(), due.clone()) != Some(due);
        }
        self.due.remove(&identity.id);
        false
    }

    /// Takes a change; `true` if sessions must be checked again.
    fn take(&mut self, change: &Change) -> bool {
        match &change.record {
            Some(Record::Certificate(certificate)) => self.certificate(certificate),
            Some(Record::Identity(identity)) => self.identity(identity),
            // The record was removed because the certificate has expired; its sessions are over.
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
    /// Reads the state; [`Revoked::follow`] must run then.
    pub fn open(store: &Store) -> Result<(Arc<Self>, Subscription<Change>), StoreError> {
        // Subscribed before the state is read, so that a revocation in between is not missed.
        let events = store.watch();
        let this = Arc::new(Self {
            known: RwLock::new(store.read_local(RevokedKeys::of)?),
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
                // A rotation changes what every identity must do, so all are read again.
                Some(ChangeEvent::Changed { changes, .. })
                    if changes.iter().any(|change| change.kind == Kind::CaRotation) =>
                {
                    self.resync(&store)
                }
                Some(ChangeEvent::Changed { changes, .. }) => self.take(&changes),
                Some(ChangeEvent::Resync) => self.resync(&store),
                None => return,
            };
            if changed {
                self.changes.send_modify(|n| *n += 1);
            }
        }
    }

    fn take(&self, changes: &[Change]) -> bool {
        let matters = |change: &&Change| matches!(change.kind, Kind::Certificate | Kind::Identity);
        if !changes.iter().any(|change| matters(&change)) {
            return false;
        }
        let mut known = self.known.write();
        // `any` would stop at the first one, and the others would not be taken.
        let news = changes
            .iter()
            .filter(matters)
            .map(|change| known.take(change));
        news.fold(false, |any, one| any | one)
    }

    fn resync(&self, store: &Store) -> bool {
        match store.read_local(RevokedKeys::of) {
            Ok(fresh) => {
                *self.known.write() = fresh;
                true
            }
            Err(e) => {
                warn!(error = %e, "revocations cannot be read, the last known ones stay");
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
