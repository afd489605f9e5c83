//! Indexes of nodes: by what clients name them and their parts, and of documents.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{MacAddr, MachineId, ProjectId};
use uuid::Uuid;

use crate::machine::entity::Machine;
use crate::node::entity::{DocumentKind, NodeDocument, NodeRecord};
use crate::tables::index::{Index, Indexed, insert, remove};

/// Lookups of nodes and documents. Names and ids of the maps to one value are unique: the commands
/// refuse a second one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NodeIndex {
    /// Node of a name.
    pub(crate) names: BTreeMap<String, MachineId>,
    /// Node by the id that it was enrolled with.
    pub(crate) aliases: BTreeMap<Uuid, MachineId>,
    /// Node of an instance that a client set.
    pub(crate) instances: BTreeMap<Uuid, MachineId>,
    /// Nodes that are parts of a node.
    pub(crate) children: BTreeMap<MachineId, BTreeSet<MachineId>>,
    /// Nodes of a chassis.
    pub(crate) chassis: BTreeMap<Uuid, BTreeSet<MachineId>>,
    /// Node of a port that clients described.
    pub(crate) ports: BTreeMap<MacAddr, MachineId>,
    /// Port of an id that a client gave.
    pub(crate) port_ids: BTreeMap<Uuid, (MachineId, MacAddr)>,
    /// Port of a name.
    pub(crate) port_names: BTreeMap<String, (MachineId, MacAddr)>,
    /// Node of a port group.
    pub(crate) groups: BTreeMap<Uuid, MachineId>,
    /// Port group of a name.
    pub(crate) group_names: BTreeMap<String, (MachineId, Uuid)>,
    /// Enrolled machines that no agent has seen, by owner.
    pub(crate) unseen: BTreeMap<Option<ProjectId>, BTreeSet<MachineId>>,
    /// Documents of a kind.
    pub(crate) documents: BTreeMap<DocumentKind, BTreeSet<Uuid>>,
    /// Documents of a kind by name; names of some kinds may repeat.
    pub(crate) document_names: BTreeMap<(DocumentKind, String), BTreeSet<Uuid>>,
    /// Documents of an owner and kind.
    pub(crate) owned_documents: BTreeMap<(Option<ProjectId>, DocumentKind), BTreeSet<Uuid>>,
}

/// Adds a machine to the index of enrolled machines.
pub(super) fn add_machine(machine: &Machine, index: &mut Index) {
    if machine.is_unseen() {
        insert(&mut index.nodes.unseen, machine.tenure.owner, machine.id);
    }
}

/// Removes what [`add_machine`] added.
pub(super) fn remove_machine(machine: &Machine, index: &mut Index) {
    remove(&mut index.nodes.unseen, &machine.tenure.owner, &machine.id);
}

impl Indexed for NodeRecord {
    fn add_to(&self, index: &mut Index) {
        let (id, content, nodes) = (self.machine, &self.content, &mut index.nodes);
        if let Some(name) = &content.name {
            nodes.names.insert(name.clone(), id);
        }
        if let Some(alias) = self.alias {
            nodes.aliases.insert(alias, id);
        }
        if let Some(instance) = content.instance {
            nodes.instances.insert(instance, id);
        }
        if let Some(parent) = content.parent {
            insert(&mut nodes.children, parent, id);
        }
        if let Some(chassis) = content.chassis {
            insert(&mut nodes.chassis, chassis, id);
        }
        for (mac, port) in &content.ports {
            nodes.ports.insert(*mac, id);
            if let Some(port_id) = port.id {
                nodes.port_ids.insert(port_id, (id, *mac));
            }
            if !port.name.is_empty() {
                nodes.port_names.insert(port.name.clone(), (id, *mac));
            }
        }
        for group in &content.groups {
            nodes.groups.insert(group.id, id);
            if !group.name.is_empty() {
                nodes.group_names.insert(group.name.clone(), (id, group.id));
            }
        }
    }
    fn remove_from(&self, index: &mut Index) {
        let (id, content, nodes) = (self.machine, &self.content, &mut index.nodes);
        if let Some(name) = &content.name {
            nodes.names.remove(name);
        }
        if let Some(alias) = &self.alias {
            nodes.aliases.remove(alias);
        }
        if let Some(instance) = &content.instance {
            nodes.instances.remove(instance);
        }
        if let Some(parent) = &content.parent {
            remove(&mut nodes.children, parent, &id);
        }
        if let Some(chassis) = &content.chassis {
            remove(&mut nodes.chassis, chassis, &id);
        }
        for (mac, port) in &content.ports {
            nodes.ports.remove(mac);
            if let Some(port_id) = &port.id {
                nodes.port_ids.remove(port_id);
            }
            nodes.port_names.remove(&port.name);
        }
        for group in &content.groups {
            nodes.groups.remove(&group.id);
            nodes.group_names.remove(&group.name);
        }
    }
}

impl Indexed for NodeDocument {
    fn add_to(&self, index: &mut Index) {
        let nodes = &mut index.nodes;
        insert(&mut nodes.documents, self.kind, self.id);
        insert(&mut nodes.owned_documents, (self.owner, self.kind), self.id);
        if !self.name.is_empty() {
            let named = (self.kind, self.name.clone());
            insert(&mut nodes.document_names, named, self.id);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        let nodes = &mut index.nodes;
        remove(&mut nodes.documents, &self.kind, &self.id);
        let owned = (self.owner, self.kind);
        remove(&mut nodes.owned_documents, &owned, &self.id);
        let named = (self.kind, self.name.clone());
        remove(&mut nodes.document_names, &named, &self.id);
    }
}
