//! Nodes as answers have them: the parts of their JSON that the state and the policy decide about.

use control_state::life::machine_orders;
use control_state::query::{NodeState, node_state};
use control_state::{EventLog, Tables};
use proto_types::Timestamp;
use serde_json::Value;

use crate::access::SeenNode;
use crate::life::may_use;
use crate::request::IronicCall;
use crate::view::{NodeMasks, NodeView, conductor_name, node, node_summary, target_power_state};

/// Makes the JSON of nodes for one call, from one state.
pub(super) struct NodeDisplay<'a> {
    call: &'a IronicCall<'a>,
    tables: &'a Tables,
    now: Timestamp,
    /// Name of the control node that leads; empty if none is known.
    conductor: String,
}

impl<'a> NodeDisplay<'a> {
    /// Shows nodes of these tables to the caller.
    pub(super) fn new(call: &'a IronicCall<'a>, tables: &'a Tables) -> Self {
        let leader = call.core.store.leader();
        Self {
            call,
            tables,
            now: call.now(),
            conductor: leader.map(conductor_name).unwrap_or_default(),
        }
    }

    /// The time of the answer.
    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    /// `true` if this is the name of the conductor of all nodes.
    pub(super) fn is_conductor(&self, name: &str) -> bool {
        self.conductor == name
    }

    /// A node with all fields.
    pub(super) fn full(&self, seen: &SeenNode) -> Value {
        let target = seen.target();
        let permits = |rule: &str| self.call.permits(rule, &target);
        let log = self.tables.get::<EventLog>(&seen.id());
        let view = NodeView {
            version: self.call.version,
            base: self.call.base,
            masks: NodeMasks::of(permits),
            is_bmc_shown: may_use(&seen.machine, self.call.caller.project()),
            state: self.state(seen),
            target_power_state: target_power_state(machine_orders(self.tables, seen.id())),
            last_heard: log.map_or(Timestamp::ZERO, |log| log.last_event_time),
            conductor: &self.conductor,
        };
        node(seen, &view)
    }

    /// A node as lists have it.
    pub(super) fn summary(&self, seen: &SeenNode) -> Value {
        node_summary(seen, self.state(seen).state, self.call.base)
    }

    fn state(&self, seen: &SeenNode) -> NodeState {
        node_state(&seen.machine, seen.record.as_deref(), self.now)
    }
}
