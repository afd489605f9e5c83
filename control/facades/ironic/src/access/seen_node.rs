//! Nodes as they are in the state, and the rule by which a caller sees one at all.

use std::sync::Arc;

use control_oslo::PolicyTarget;
use control_state::query::{node_named, node_of_alias};
use control_state::{Machine, NodeContent, NodeRecord, Tables};
use proto_types::{MachineId, ProjectId};
use uuid::Uuid;

use super::{AccessPolicy, FacadeCaller};
use crate::error::IronicError;

/// The rule without which a node does not exist for a caller.
const GET: &str = "baremetal:node:get";

/// A node, as of one read.
#[derive(Debug, Clone)]
pub(crate) struct SeenNode {
    /// The machine.
    pub(crate) machine: Arc<Machine>,
    /// Its record. `None` means that no client changed it yet.
    pub(crate) record: Option<Arc<NodeRecord>>,
    /// The owner as rules compare it.
    owner_text: Option<String>,
    /// The lessee as rules compare it.
    lessee_text: Option<String>,
}

impl SeenNode {
    /// The node of a machine.
    pub(crate) fn of(tables: &Tables, machine: &Arc<Machine>) -> Self {
        let record = tables.get::<NodeRecord>(&machine.id).cloned();
        Self::new(Arc::clone(machine), record)
    }

    fn new(machine: Arc<Machine>, record: Option<Arc<NodeRecord>>) -> Self {
        let text = |project: Option<ProjectId>| project.map(|project| project.to_string());
        Self {
            owner_text: text(machine.tenure.owner),
            lessee_text: text(lessee(&machine)),
            machine,
            record,
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> MachineId {
        self.machine.id
    }

    /// The project that owns it.
    pub(crate) fn owner(&self) -> Option<ProjectId> {
        self.machine.tenure.owner
    }

    /// The project that uses it and does not own it.
    pub(crate) fn lessee(&self) -> Option<ProjectId> {
        lessee(&self.machine)
    }

    /// The fields of clients, to change and write back with [`SeenNode::generation`].
    pub(crate) fn content(&self) -> NodeContent {
        let record = self.record.as_ref();
        record.map_or_else(NodeContent::default, |record| record.content.clone())
    }

    /// The node as it is in the next hands: without the instance of the present ones.
    pub(crate) fn after_use(&self) -> Self {
        let record = self.record.as_deref().map(|record| NodeRecord {
            content: record.after_use(),
            ..record.clone()
        });
        Self {
            record: record.map(Arc::new),
            ..self.clone()
        }
    }

    /// Generation of the record, by which a change is locked; 0 without one.
    pub(crate) fn generation(&self) -> u64 {
        let record = self.record.as_ref();
        record.map_or(0, |record| record.meta.generation)
    }

    /// The node as rules see it.
    pub(crate) fn target(&self) -> PolicyTarget<'_> {
        PolicyTarget::node(self.owner_text.as_deref(), self.lessee_text.as_deref())
    }

    /// `true` if the caller sees the node. A host of a pool is the operators' alone: a project has its
    /// claim, and does not learn the machine.
    pub(crate) fn is_seen_by(&self, policy: &AccessPolicy, caller: &FacadeCaller) -> bool {
        let is_hidden = self.machine.pool.is_some() && !caller.is_system();
        !is_hidden && policy.permits(GET, caller, &self.target())
    }
}

/// The project that uses a machine and does not own it: the lessee, or the one that allocated it.
fn lessee(machine: &Machine) -> Option<ProjectId> {
    let allocation = machine.allocation.as_ref();
    let user = allocation.filter(|found| found.claim.is_none());
    let user = user.map(|found| found.project);
    let lessee = machine.tenure.lessee.or(user);
    lessee.filter(|project| machine.tenure.owner != Some(*project))
}

/// The node of this id or name. `None` means that there is none.
pub(crate) fn find_node(tables: &Tables, ident: &str) -> Option<SeenNode> {
    let machine = match Uuid::parse_str(ident) {
        Ok(id) => {
            let machine = tables.get::<Machine>(&MachineId::new(id));
            machine.or_else(|| tables.get::<Machine>(&node_of_alias(tables, id)?))
        }
        Err(_) => tables.get::<Machine>(&node_named(tables, ident)?),
    };
    machine.map(|machine| SeenNode::of(tables, machine))
}

/// The node of this id or name, if the caller sees it.
///
/// # Errors
/// 404, in the words for one that does not exist; 403 for callers in the scope of the site, whose
/// right does not depend on the node.
pub(crate) fn seen_node(
    tables: &Tables,
    policy: &AccessPolicy,
    caller: &FacadeCaller,
    ident: &str,
) -> Result<SeenNode, IronicError> {
    let unknown = || IronicError::not_found("Node", ident);
    let node = find_node(tables, ident).ok_or_else(unknown)?;
    match (node.is_seen_by(policy, caller), caller.is_system()) {
        (true, _) => Ok(node),
        (false, true) => Err(IronicError::forbidden(GET)),
        (false, false) => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use control_state::Meta;
    use proto_types::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    impl SeenNode {
        /// A node for tests: its machine waits, but for these fields. `content` is that of its record.
        pub(crate) fn of_json(fields: Value, content: Option<NodeContent>) -> Self {
            let mut all = json!({
                "id": "00000000-0000-0000-0000-000000000007",
                "meta": {},
                "phase": "waiting",
                "since": 1000,
                "dirty": false,
            });
            let Value::Object(fields) = fields else {
                panic!("the fields of a machine are an object");
            };
            for (name, value) in fields {
                all[name] = value;
            }
            let machine: Machine = serde_json::from_value(all).unwrap();
            let record = content.map(|content| NodeRecord {
                machine: machine.id,
                meta: Meta {
                    generation: 1,
                    updated_at: Timestamp::from_ms(1000),
                    ..Meta::default()
                },
                alias: None,
                content,
                replaced_extra: BTreeMap::new(),
            });
            Self::new(Arc::new(machine), record.map(Arc::new))
        }
    }

    const OWNER: &str = "00000000-0000-0000-0000-00000000000a";
    const OTHER: &str = "00000000-0000-0000-0000-00000000000b";

    #[test]
    fn owners_and_lessees() {
        let project = |text: &str| text.parse::<ProjectId>().unwrap();
        for (fields, owner, lessee) in [
            (json!({}), None, None),
            (
                json!({"tenure": {"owner": OWNER}}),
                Some(project(OWNER)),
                None,
            ),
            (
                json!({"tenure": {"owner": OWNER, "lessee": OTHER}}),
                Some(project(OWNER)),
                Some(project(OTHER)),
            ),
            // An owner that is its own lessee is shown as the owner alone.
            (
                json!({"tenure": {"owner": OWNER, "lessee": OWNER}}),
                Some(project(OWNER)),
                None,
            ),
        ] {
            let node = SeenNode::of_json(fields.clone(), None);
            assert_eq!((node.owner(), node.lessee()), (owner, lessee), "{fields}");
            assert_eq!(node.generation(), 0, "{fields}");
        }
        let changed = SeenNode::of_json(json!({}), Some(NodeContent::default()));
        assert_eq!(changed.generation(), 1);
    }
}
