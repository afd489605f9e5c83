//! Ports and port groups by what clients call them.

use control_oslo::PolicyTarget;
use control_state::query::{
    card_machine, described_port, group_named, group_of_id, port_named, port_of_id,
};
use control_state::{Machine, NodePortGroup, Tables};
use proto_types::{MacAddr, MachineId};
use uuid::Uuid;

use crate::access::{SeenNode, find_node};
use crate::error::IronicError;
use crate::request::IronicCall;
use crate::view::{NodeCard, card_of_id, stored};

/// A port, with its node.
#[derive(Debug, Clone)]
pub(super) struct FoundPort {
    /// The node.
    pub(super) node: SeenNode,
    /// Address of the card.
    pub(super) mac: MacAddr,
}

/// A port group, with its node.
#[derive(Debug, Clone)]
pub(super) struct FoundGroup {
    /// The node.
    pub(super) node: SeenNode,
    /// The group.
    pub(super) group: NodePortGroup,
}

impl FoundPort {
    /// The port as a card of its node.
    pub(super) const fn card(&self) -> NodeCard<'_> {
        NodeCard {
            node: &self.node,
            mac: self.mac,
        }
    }
}

/// The port of this id, address or name, if the caller sees its node and the rule permits the call.
///
/// # Errors
/// 404 for one that the caller does not see, as for one that does not exist; 403 if the rule refuses.
pub(super) fn port_for(
    call: &IronicCall<'_>,
    tables: &Tables,
    rule: &str,
) -> Result<FoundPort, IronicError> {
    let ident = call.parameter("port");
    let mut found = find_ports(tables, ident).into_iter();
    let seen = found.find(|port| port.node.is_seen_by(call.policy, call.caller));
    let port = seen.ok_or_else(|| IronicError::not_found("Port", ident))?;
    call.require(rule, &port.node.target())?;
    Ok(port)
}

/// The port group of this id or name, if the caller sees its node and the rule permits the call.
///
/// # Errors
/// As [`port_for`].
pub(super) fn group_for(
    call: &IronicCall<'_>,
    tables: &Tables,
    rule: &str,
) -> Result<FoundGroup, IronicError> {
    let group = seen_group(call, tables, call.parameter("portgroup"))?;
    call.require(rule, &group.node.target())?;
    Ok(group)
}

/// The port group of this id or name, if the caller sees its node.
///
/// # Errors
/// 404.
pub(super) fn seen_group(
    call: &IronicCall<'_>,
    tables: &Tables,
    ident: &str,
) -> Result<FoundGroup, IronicError> {
    let found = find_group(tables, ident);
    let seen = found.filter(|group| group.node.is_seen_by(call.policy, call.caller));
    seen.ok_or_else(|| IronicError::not_found("Portgroup", ident))
}

/// The node that a new port or port group is to belong to, if the rule permits it there. The rule
/// decides first, so that a node which the caller does not see is refused as one that is not there.
///
/// # Errors
/// 403 if the rule refuses, 400 for a node that does not exist.
pub(super) fn node_of_new(
    call: &IronicCall<'_>,
    tables: &Tables,
    rule: &str,
    ident: &str,
) -> Result<SeenNode, IronicError> {
    let node = find_node(tables, ident);
    let seen = node.filter(|node| node.is_seen_by(call.policy, call.caller));
    let Some(node) = seen else {
        call.require(rule, &PolicyTarget::none())?;
        let text = format!("Node {ident} could not be found.");
        return Err(IronicError::invalid(text));
    };
    call.require(rule, &node.target())?;
    Ok(node)
}

/// The ports of this id, address or name, the most trustworthy first. There is more than one only if a client
/// described a card, or gave a port an id, that is another node's: neither hides the other from its
/// project.
fn find_ports(tables: &Tables, ident: &str) -> Vec<FoundPort> {
    let places = match (Uuid::parse_str(ident), ident.parse::<MacAddr>()) {
        (Ok(id), _) => {
            let mut places = derived_ports(tables, id);
            places.extend(port_of_id(tables, id));
            places
        }
        (Err(_), Ok(mac)) => {
            let machines = machines_of_card(tables, mac).into_iter();
            machines.map(|machine| (machine, mac)).collect()
        }
        (Err(_), Err(_)) => port_named(tables, ident).into_iter().collect(),
    };
    let found = places.into_iter().filter_map(|(machine, mac)| {
        let node = node_of(tables, machine)?;
        Some(FoundPort { node, mac })
    });
    found.collect()
}

/// The ports whose id follows from their address. A client that gave one another id finds it by that one
/// alone.
fn derived_ports(tables: &Tables, id: Uuid) -> Vec<(MachineId, MacAddr)> {
    let Some(mac) = card_of_id(id) else {
        return Vec::new();
    };
    let has_id = |machine: &MachineId| {
        let node = node_of(tables, *machine);
        node.is_some_and(|node| NodeCard { node: &node, mac }.id() == id)
    };
    let machines = machines_of_card(tables, mac).into_iter().filter(has_id);
    machines.map(|machine| (machine, mac)).collect()
}

/// The machine that registered a card with this address, and the one for which a client described it, if
/// that is another one. A card that is in neither may be one of a machine that just boots.
pub(super) fn machines_of_card(tables: &Tables, mac: MacAddr) -> Vec<MachineId> {
    let mut machines: Vec<MachineId> = card_machine(tables, mac).into_iter().collect();
    machines.extend(described_port(tables, mac));
    machines.dedup();
    if machines.is_empty() {
        let mut all = tables.all::<Machine>();
        let booted = all.find(|machine| machine.boot_macs.contains(&mac));
        machines.extend(booted.map(|machine| machine.id));
    }
    machines
}

fn find_group(tables: &Tables, ident: &str) -> Option<FoundGroup> {
    let (machine, id) = match Uuid::parse_str(ident) {
        Ok(id) => (group_of_id(tables, id)?, id),
        Err(_) => group_named(tables, ident)?,
    };
    let node = node_of(tables, machine)?;
    let mut groups = stored(&node).groups.iter();
    let group = groups.find(|group| group.id == id)?.clone();
    Some(FoundGroup { node, group })
}

fn node_of(tables: &Tables, machine: MachineId) -> Option<SeenNode> {
    let machine = tables.get::<Machine>(&machine)?;
    Some(SeenNode::of(tables, machine))
}
