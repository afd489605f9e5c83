//! FRR's numbers of the entries of prefix lists.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{PrefixEntry, PrefixListKey};

/// Numbers of entries. They say which entry is to be deleted, and mean nothing else: an entry has
/// several if FRR holds it in several spellings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PrefixNumbers {
    entries: BTreeMap<PrefixEntry, BTreeSet<u32>>,
    /// Numbers in use in each list, by foreign entries too.
    used: BTreeMap<PrefixListKey, BTreeSet<u32>>,
}

impl PrefixNumbers {
    /// Numbers under which FRR holds an entry, ascending.
    pub(super) fn of(&self, entry: &PrefixEntry) -> impl Iterator<Item = u32> {
        self.entries.get(entry).into_iter().flatten().copied()
    }

    /// Records an entry of ours.
    pub(super) fn note(&mut self, entry: &PrefixEntry, sequence: u32) {
        self.take(entry.key(), sequence);
        let numbers = self.entries.entry(entry.clone()).or_default();
        numbers.insert(sequence);
    }

    /// Records a number in use in a list of ours.
    pub(super) fn take(&mut self, key: PrefixListKey, sequence: u32) {
        self.used.entry(key).or_default().insert(sequence);
    }

    /// A free number in the list of an entry: FRR's choice, or the lowest if there is none above.
    pub(super) fn free(&self, entry: &PrefixEntry) -> u32 {
        let Some(used) = self.used.get(&entry.key()) else {
            return 5;
        };
        // The entry that closes the list stays behind all others.
        let last = used.range(..PrefixListKey::LAST).next_back();
        let last = last.copied().unwrap_or(0);
        // FRR numbers in steps of five.
        match (last / 5).checked_add(1).and_then(|n| n.checked_mul(5)) {
            Some(next) => next,
            None => (1..u32::MAX).find(|n| !used.contains(n)).unwrap_or(1),
        }
    }
}
