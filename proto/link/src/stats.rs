//! What a server counts: handshakes by how they ended, calls by method and code.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use proto_identity::SpiffeId;
use strum::{IntoStaticStr, VariantArray};

use crate::method::MethodSpec;
use crate::status::Code;

/// How the beginning of a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Handshake {
    /// There is a session.
    Done,
    /// TLS or QUIC refused it, or the other side went away.
    Failed,
    /// It took too long.
    Late,
    /// The certificate names nobody of ours, or somebody who is revoked.
    Stranger,
    /// There are too many sessions, or too many came at once.
    TooMany,
    /// Too many were in progress: refused before it began.
    Busy,
    /// The caller was asked to prove its address first.
    Retry,
}

impl Handshake {
    /// Short name for people and monitoring.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Calls of one method that ended with one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallCount {
    /// Path of the method; `unknown` for calls that never got as far as to have one.
    pub method: &'static str,
    /// How they ended.
    pub code: Code,
    /// How many.
    pub count: u64,
}

/// What a server counted since it was bound, and who is there now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Begun sessions, by how that ended.
    pub handshakes: Vec<(Handshake, u64)>,
    /// Handshakes in progress.
    pub handshakes_open: usize,
    /// Open sessions by what the other side is.
    pub sessions: BTreeMap<&'static str, u64>,
    /// Calls that ended; those that never came are left out.
    pub calls: Vec<CallCount>,
}

#[derive(Debug, Default)]
pub(crate) struct Handshakes([AtomicU64; Handshake::VARIANTS.len()]);

impl Handshakes {
    pub(crate) fn add(&self, how: Handshake) {
        if let Some(count) = self.0.get(how as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn counted(&self) -> Vec<(Handshake, u64)> {
        let counts = self.0.iter().map(|it| it.load(Ordering::Relaxed));
        Handshake::VARIANTS.iter().copied().zip(counts).collect()
    }
}

/// Revoked identities that are remembered; those that tried least lately go first.
const TURNED_AWAY_MAX: usize = 256;

/// A revoked identity whose bearer tried to come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnedAway {
    /// Who.
    pub id: SpiffeId,
    /// How often.
    pub times: u64,
    /// When last, milliseconds since the epoch.
    pub last_ms: u64,
}

/// Who was turned away since the server was bound.
#[derive(Debug, Default)]
pub(crate) struct Doorkeeper(Mutex<BTreeMap<SpiffeId, (u64, u64)>>);

impl Doorkeeper {
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

/// Codes that there are.
const CODES: u8 = 17;

#[derive(Debug, Default)]
struct ByCode([AtomicU64; CODES as usize]);

/// Counts the calls of a server's methods.
#[derive(Debug)]
pub(crate) struct Calls {
    methods: BTreeMap<&'static str, ByCode>,
    unknown: ByCode,
}

impl Calls {
    pub(crate) fn of(methods: impl Iterator<Item = &'static MethodSpec>) -> Self {
        Self {
            methods: methods.map(|it| (it.path, ByCode::default())).collect(),
            unknown: ByCode::default(),
        }
    }

    pub(crate) fn add(&self, method: Option<&'static MethodSpec>, code: Code) {
        let counts = method.and_then(|method| self.methods.get(method.path));
        let counts = counts.unwrap_or(&self.unknown);
        if let Some(count) = counts.0.get(usize::from(code as u8)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn counted(&self) -> Vec<CallCount> {
        let known = self.methods.iter().map(|(path, counts)| (*path, counts));
        let all = known.chain(std::iter::once(("unknown", &self.unknown)));
        all.flat_map(|(method, counts)| {
            let codes = (0..CODES).map(Code::from_u8).zip(&counts.0);
            codes.map(move |(code, count)| CallCount {
                method,
                code,
                count: count.load(Ordering::Relaxed),
            })
        })
        .filter(|it| it.count > 0)
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_at_the_door_is_bounded() {
        let keeper = Doorkeeper::default();
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
        assert!(!all.iter().any(|it| it.id == id(0)));
        let last = all.iter().find(|it| it.id == id(299)).unwrap();
        assert_eq!((last.times, last.last_ms), (2, 1000));
    }

    #[test]
    fn metric_names_do_not_change() {
        let names: Vec<&str> = Handshake::VARIANTS
            .iter()
            .map(|handshake| handshake.as_str())
            .collect();
        let expected = [
            "done", "failed", "late", "stranger", "too_many", "busy", "retry",
        ];
        assert_eq!(names, expected);
        let codes: Vec<&str> = (0..=16).map(|code| Code::from_u8(code).as_str()).collect();
        let expected = [
            "ok",
            "cancelled",
            "unknown",
            "invalid_argument",
            "deadline_exceeded",
            "not_found",
            "already_exists",
            "permission_denied",
            "resource_exhausted",
            "failed_precondition",
            "aborted",
            "out_of_range",
            "unimplemented",
            "internal",
            "unavailable",
            "data_loss",
            "unauthenticated",
        ];
        assert_eq!(codes, expected);
    }
}
