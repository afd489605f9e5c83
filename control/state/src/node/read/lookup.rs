//! Nodes, ports and port groups by what clients call them.

use proto_types::{MacAddr, MachineId};
use uuid::Uuid;

use crate::tables::Tables;

/// The machine whose node has this name.
pub fn node_named(tables: &Tables, name: &str) -> Option<MachineId> {
    tables.index().nodes.names.get(name).copied()
}

/// The machine whose node was enrolled with this id, before it was seen under its own.
pub fn node_of_alias(tables: &Tables, id: Uuid) -> Option<MachineId> {
    tables.index().nodes.aliases.get(&id).copied()
}

/// The machine whose node a client gave this instance. Node allocations are not looked at.
pub fn node_of_instance(tables: &Tables, id: Uuid) -> Option<MachineId> {
    tables.index().nodes.instances.get(&id).copied()
}

/// Machines whose nodes are parts of this one's, in the order of ids.
pub fn node_children(tables: &Tables, parent: MachineId) -> impl Iterator<Item = MachineId> {
    let children = tables.index().nodes.children.get(&parent);
    children.into_iter().flatten().copied()
}

/// Machines whose nodes are in a chassis, in the order of ids.
pub fn chassis_nodes(tables: &Tables, chassis: Uuid) -> impl Iterator<Item = MachineId> {
    let nodes = tables.index().nodes.chassis.get(&chassis);
    nodes.into_iter().flatten().copied()
}

/// The port with this id, if a client gave it.
pub fn port_of_id(tables: &Tables, id: Uuid) -> Option<(MachineId, MacAddr)> {
    tables.index().nodes.port_ids.get(&id).copied()
}

/// The port of this name.
pub fn port_named(tables: &Tables, name: &str) -> Option<(MachineId, MacAddr)> {
    tables.index().nodes.port_names.get(name).copied()
}

/// The machine for which clients described a port with this address.
pub fn described_port(tables: &Tables, mac: MacAddr) -> Option<MachineId> {
    tables.index().nodes.ports.get(&mac).copied()
}

/// The machine that registered a card with this address; the first one if several claim it.
pub fn card_machine(tables: &Tables, mac: MacAddr) -> Option<MachineId> {
    let machines = tables.index().card_machines.get(&mac)?;
    machines.first().copied()
}

/// The machine that has this port group.
pub fn group_of_id(tables: &Tables, id: Uuid) -> Option<MachineId> {
    tables.index().nodes.groups.get(&id).copied()
}

/// The port group of this name.
pub fn group_named(tables: &Tables, name: &str) -> Option<(MachineId, Uuid)> {
    tables.index().nodes.group_names.get(name).copied()
}
