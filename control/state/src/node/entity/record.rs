//! The record of a node.

use std::collections::BTreeMap;

use proto_types::MachineId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::meta::Meta;
use crate::node::entity::NodeContent;

/// The fields of a machine that only clients of Ironic's API write and read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The machine; the key.
    pub machine: MachineId,
    /// Times and generation, by which changes are locked; no labels.
    pub meta: Meta,
    /// The id that the node was enrolled with. `None` means that it is the machine's: a node that was
    /// enrolled before its machine was seen goes on under the machine's id, and is found by both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<Uuid>,
    /// The fields that a change replaces as a whole.
    pub content: NodeContent,
    /// Values of `extra` that the present user of the machine, who does not own it, replaced; `None` for
    /// one that was not there. They come back when the use ends.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced_extra: BTreeMap<String, Option<String>>,
}

impl NodeRecord {
    /// The fields as the next user of the machine finds them.
    pub fn after_use(&self) -> NodeContent {
        let mut content = self.content.without_instance();
        for (name, value) in &self.replaced_extra {
            match value {
                Some(value) => content.extra.insert(name.clone(), value.clone()),
                None => content.extra.remove(name),
            };
        }
        content
    }
}
