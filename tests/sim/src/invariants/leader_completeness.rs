//! Leader completeness: an entry that was committed in some term is in the logs of the leaders of
//! all later terms.

use std::collections::BTreeMap;

use control_store::sim::{LoggedEntry, Probe};

#[derive(Debug, Default)]
pub(crate) struct LeaderCompleteness {
    /// By index: the entry's term, and the newest term anywhere when it was seen to be committed.
    committed: BTreeMap<u64, (u64, u64)>,
    newest_term: u64,
}

impl LeaderCompleteness {
    pub(crate) fn look(
        &mut self,
        node: u64,
        probe: &Probe,
        log: &[LoggedEntry],
    ) -> Result<(), String> {
        self.newest_term = self.newest_term.max(probe.term);
        if let Some((committed, _)) = probe.committed {
            for entry in log.iter().filter(|entry| entry.index <= committed) {
                let seen = (entry.term, self.newest_term);
                let (term, _) = *self.committed.entry(entry.index).or_insert(seen);
                if term != entry.term {
                    return Err(format!(
                        "entry {} was committed with term {term}, and on node {node} with {}",
                        entry.index, entry.term
                    ));
                }
            }
        }
        if probe.leads {
            self.check_leader(node, probe, log)?;
        }
        Ok(())
    }

    fn check_leader(&self, node: u64, probe: &Probe, log: &[LoggedEntry]) -> Result<(), String> {
        let first = probe.purged.map_or(0, |purged| purged + 1);
        let has: BTreeMap<u64, u64> = log.iter().map(|e| (e.index, e.term)).collect();
        for (index, (term, seen_in)) in self.committed.range(first..) {
            if *seen_in < probe.term && has.get(index) != Some(term) {
                return Err(format!(
                    "node {node} leads term {} without entry {index} of term {term}, which was \
                     committed before",
                    probe.term
                ));
            }
        }
        Ok(())
    }
}
