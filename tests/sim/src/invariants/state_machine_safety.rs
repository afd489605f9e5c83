//! State machine safety: after the same entry all nodes have the same state, the membership too.
//!
//! The state itself is compared where it is made, by the checksum of all that was applied.

use std::collections::BTreeMap;

use control_store::sim::Probe;

use crate::machine::applied;

#[derive(Debug, Default)]
pub(crate) struct StateMachineSafety {
    /// By applied entry: the entry that made the membership.
    memberships: BTreeMap<u64, Option<u64>>,
}

impl StateMachineSafety {
    pub(crate) fn look(&mut self, node: u64, probe: &Probe) -> Result<(), String> {
        if let Some(conflict) = applied(|applied| applied.conflict.clone()) {
            return Err(format!("nodes applied different histories: {conflict}"));
        }
        let Some(at) = probe.applied else {
            return Ok(());
        };
        let first = *self.memberships.entry(at).or_insert(probe.membership_at);
        if first == probe.membership_at {
            Ok(())
        } else {
            Err(format!(
                "after entry {at} the membership is that of entry {first:?}, on node {node} that \
                 of entry {:?}",
                probe.membership_at
            ))
        }
    }
}
