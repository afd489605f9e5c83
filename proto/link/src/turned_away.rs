//! Revoked identities that tried to open a session.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use proto_identity::SpiffeId;

/// Revoked identities kept in memory. A further one evicts the one whose last attempt is oldest.
const TURNED_AWAY_MAX: usize = 256;

/// A revoked identity that tried to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnedAway {
    /// The identity.
    pub id: SpiffeId,
    /// Number of attempts.
    pub times: u64,
    /// Time of the last attempt, milliseconds since the epoch.
    pub last_ms: u64,
}

/// Attempts of revoked identities since the server was bound: number and time of the last, by
/// identity.
#[derive(Debug, Default)]
pub(crate) struct RevokedAttempts(Mutex<BTreeMap<SpiffeId, (u64, u64)>>);

impl RevokedAttempts {
    pub(crate) fn note(&self, id: &SpiffeId, now_ms: u64) {
        let mut known = self.0.lock();
        if known.len() >= TURNED_AWAY_MAX && !known.contains_key(id) {
            let oldest = known.iter().min_by_key(|(_, (_, last))| *last);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                known.remove(&oldest);
            }
        }
        let entry = known.entry(id.clone()).or_default();
        *entry = (entry.0 + 1, now_ms);
    }

    pub(crate) fn list(&self) -> Vec<TurnedAway> {
        let known = self.0.lock();
        let all = known.iter().map(|(id, (times, last_ms))| TurnedAway {
            id: id.clone(),
            times: *times,
            last_ms: *last_ms,
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_at_the_door_is_bounded() {
        let keeper = RevokedAttempts::default();
        let id = |n: u64| -> SpiffeId {
            format!("spiffe://mesh.example/partition/p/core/leaf{n}")
                .parse()
                .unwrap()
        };
        for n in 0..300 {
            keeper.note(&id(n), n);
        }
        keeper.note(&id(299), 1000);
        let all = keeper.list();
        assert_eq!(all.len(), TURNED_AWAY_MAX);
        assert!(!all.iter().any(|attempt| attempt.id == id(0)));
        let last = all.iter().find(|attempt| attempt.id == id(299)).unwrap();
        assert_eq!((last.times, last.last_ms), (2, 1000));
    }
}
