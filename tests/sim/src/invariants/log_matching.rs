//! Log matching: two logs that have an entry of the same index and term are equal up to it.
//!
//! By induction this is so when index and term determine the entry and the term of the one before.

use std::collections::BTreeMap;

use control_store::sim::LoggedEntry;

#[derive(Debug, Default)]
pub(crate) struct LogMatching {
    /// By index and term: checksum, and the term of the entry before where it was seen.
    entries: BTreeMap<(u64, u64), (u32, Option<u64>)>,
}

impl LogMatching {
    pub(crate) fn look(&mut self, node: u64, log: &[LoggedEntry]) -> Result<(), String> {
        let mut before: Option<&LoggedEntry> = None;
        for entry in log {
            if before.is_some_and(|before| before.index + 1 != entry.index) {
                return Err(format!(
                    "the log of node {node} has a hole before entry {}",
                    entry.index
                ));
            }
            let previous = before.map(|before| before.term);
            let known = self
                .entries
                .entry((entry.index, entry.term))
                .or_insert((entry.digest, previous));
            known.1 = known.1.or(previous);
            if known.0 != entry.digest || (previous.is_some() && known.1 != previous) {
                return Err(format!(
                    "entry {} of term {} is another one on node {node} than elsewhere",
                    entry.index, entry.term
                ));
            }
            before = Some(entry);
        }
        Ok(())
    }
}
