//! Drift that was found of late.

use std::collections::VecDeque;
use std::time::Duration;

use agents_nos::{Drift, SwitchObject};
use tokio::time::Instant;

/// Entries at most. The oldest makes room.
const ENTRIES_MAX: usize = 32;
/// How long a healed entry is reported. Control gets a report every ten seconds, and may be away
/// for some of them.
const HEALED_KEPT: Duration = Duration::from_secs(300);

/// Drift of the last minutes, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct DriftLog(VecDeque<(DriftEntry, Instant)>);

/// One change by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DriftEntry {
    /// The change.
    pub(crate) drift: Drift,
    /// Time when it was noticed, milliseconds since 1970.
    pub(crate) noticed_ms: u64,
    /// `true` if the object is as desired again.
    pub(crate) is_healed: bool,
    /// `true` if the object stays as somebody made it, by policy.
    pub(crate) is_held: bool,
}

impl DriftLog {
    /// Notes a change. `false` if it is known and not healed yet.
    pub(crate) fn note(&mut self, drift: &Drift, noticed_ms: u64) -> bool {
        let mut open = self.0.iter().filter(|(entry, _)| !entry.is_healed);
        if open.any(|(entry, _)| entry.drift == *drift) {
            return false;
        }
        // Another change of the same object takes the place of the first one.
        self.0
            .retain(|(entry, _)| entry.is_healed || entry.drift.object != drift.object);
        if self.0.len() >= ENTRIES_MAX {
            self.0.pop_front();
        }
        let entry = DriftEntry {
            drift: drift.clone(),
            noticed_ms,
            is_healed: false,
            is_held: false,
        };
        self.0.push_back((entry, Instant::now()));
        true
    }

    /// Marks the entries whose objects are as desired, forgets old ones, and returns the number of
    /// those that were marked.
    pub(crate) fn update(&mut self, is_as_desired: impl Fn(&SwitchObject) -> bool) -> usize {
        let mut healed = 0;
        for (entry, _) in &mut self.0 {
            if !entry.is_healed && is_as_desired(&entry.drift.object) {
                entry.is_healed = true;
                healed += 1;
            }
        }
        self.0
            .retain(|(entry, at)| !entry.is_healed || at.elapsed() < HEALED_KEPT);
        healed
    }

    /// The entries, oldest first, with those that are held.
    pub(crate) fn entries(&self, is_held: impl Fn(&SwitchObject) -> bool) -> Vec<DriftEntry> {
        let entries = self.0.iter().map(|(entry, _)| DriftEntry {
            is_held: !entry.is_healed && is_held(&entry.drift.object),
            ..entry.clone()
        });
        entries.collect()
    }

    /// The changes that are not healed.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Drift> {
        let open = self.0.iter().filter(|(entry, _)| !entry.is_healed);
        open.map(|(entry, _)| &entry.drift)
    }
}

#[cfg(test)]
mod tests {
    use agents_nos::model::PortName;

    use super::*;

    fn drift(number: usize, seen: &str) -> Drift {
        Drift {
            object: SwitchObject::Port(PortName::new(&format!("swp{number}")).unwrap()),
            seen: seen.into(),
            desired: "up".into(),
            is_unsafe: false,
        }
    }

    #[tokio::test]
    async fn an_open_change_is_noted_once_and_a_healed_one_again() {
        let mut log = DriftLog::default();
        assert!(log.note(&drift(1, "down"), 1));
        assert!(!log.note(&drift(1, "down"), 2));
        assert!(log.note(&drift(1, "quarantined"), 3), "another change");
        assert_eq!(log.open().count(), 1);
        assert_eq!(log.update(|_| true), 1);
        assert_eq!(log.update(|_| true), 0, "marked once");
        assert!(log.note(&drift(1, "quarantined"), 4));
        let told: Vec<_> = log
            .entries(|_| false)
            .iter()
            .map(|e| (e.noticed_ms, e.is_healed))
            .collect();
        assert_eq!(told, [(3, true), (4, false)]);
    }

    #[tokio::test]
    async fn the_oldest_makes_room() {
        let mut log = DriftLog::default();
        for number in 0..=ENTRIES_MAX {
            assert!(log.note(&drift(number, "down"), 1));
        }
        let entries = log.entries(|_| false);
        assert_eq!(entries.len(), ENTRIES_MAX);
        assert_eq!(entries[0].drift, drift(1, "down"));
    }
}
