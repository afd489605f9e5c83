//! Election safety: a term has at most one leader (Raft, figure 3).

use std::collections::BTreeMap;

use control_store::sim::Probe;

#[derive(Debug, Default)]
pub(crate) struct ElectionSafety {
    leaders: BTreeMap<u64, u64>,
}

impl ElectionSafety {
    pub(crate) fn look(&mut self, node: u64, probe: &Probe) -> Result<(), String> {
        let claimed = if probe.leads {
            Some(node)
        } else {
            probe.leader
        };
        let Some(leader) = claimed else { return Ok(()) };
        let first = *self.leaders.entry(probe.term).or_insert(leader);
        if first == leader {
            Ok(())
        } else {
            Err(format!(
                "term {} has two leaders, node {first} and, says node {node}, node {leader}",
                probe.term
            ))
        }
    }
}
