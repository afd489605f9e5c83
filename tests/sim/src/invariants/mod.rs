//! What must hold at every step, one invariant a file.

pub(crate) mod election_safety;
pub(crate) mod leader_completeness;
pub(crate) mod log_matching;
pub(crate) mod state_machine_safety;
pub(crate) mod watch;

use control_store::sim::{LoggedEntry, Probe};

use election_safety::ElectionSafety;
use leader_completeness::LeaderCompleteness;
use log_matching::LogMatching;
use state_machine_safety::StateMachineSafety;

/// All invariants and what they remember.
#[derive(Debug, Default)]
pub(crate) struct Invariants {
    elections: ElectionSafety,
    logs: LogMatching,
    leaders: LeaderCompleteness,
    states: StateMachineSafety,
}

impl Invariants {
    /// Looks at a node from outside; cheap.
    pub(crate) fn look(&mut self, node: u64, probe: &Probe) -> Result<(), String> {
        self.elections.look(node, probe)?;
        self.states.look(node, probe)
    }

    /// Looks into a node's log.
    pub(crate) fn look_into(
        &mut self,
        node: u64,
        probe: &Probe,
        log: &[LoggedEntry],
    ) -> Result<(), String> {
        self.logs.look(node, log)?;
        self.leaders.look(node, probe, log)
    }
}
