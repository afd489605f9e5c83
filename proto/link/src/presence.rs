//! The sessions and counters of a server, for readers outside of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_identity::{CallerKind, SpiffeId};

use crate::accept::ServerShared;
use crate::stats::LinkStats;
use crate::turned_away::TurnedAway;

/// The open sessions and counters of a server. Cheap to clone (`Arc`).
#[derive(Clone, Debug)]
pub struct Presence(pub(crate) Arc<ServerShared>);

impl Presence {
    /// `true` if this identity has an open session.
    pub fn is_here(&self, id: &SpiffeId) -> bool {
        let sessions = self.0.sessions.lock();
        sessions.open.contains_key(&Some(id.clone()))
    }

    /// Revoked identities that tried to open a session.
    pub fn turned_away(&self) -> Vec<TurnedAway> {
        self.0.revoked_attempts.list()
    }

    /// The counters and open sessions. Walks over all identities that have a session.
    pub fn stats(&self) -> LinkStats {
        let shared = &self.0;
        let mut by_kind = BTreeMap::new();
        let sessions = shared.sessions.lock();
        for (id, open) in &sessions.open {
            let kind = id
                .as_ref()
                .map_or(CallerKind::Anonymous, SpiffeId::caller_kind);
            let open = u64::try_from(open.len()).unwrap_or(u64::MAX);
            *by_kind.entry(kind.as_str()).or_default() += open;
        }
        drop(sessions);
        LinkStats {
            handshakes: shared.handshake_counts.counted(),
            handshakes_open: shared.open_handshakes.count(),
            sessions: by_kind,
            calls: shared.services.counts.counted(),
        }
    }
}
