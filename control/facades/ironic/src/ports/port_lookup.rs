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
    let found = find_port(tables, ident);
    let seen = found.filter(|port| port.node.is_seen_by(call.policy, call.caller));
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

/// The port of this id, address or name.
fn find_port(tables: &Tables, ident: &str) -> Option<FoundPort> {
    let (machine, mac) = match Uuid::parse_str(ident) {
        Ok(id) => port_of_id(tables, id).or_else(|| derived_port(tables, id))?,
        Err(_) => match ident.parse::<MacAddr>() {
            Ok(mac) => (machine_of_card(tables, mac)?, mac),
            Err(_) => port_named(tables, ident)?,
        },
    };
    let node = node_of(tables, machine)?;
    Some(FoundPort { node, mac })
}

/// The port whose id follows from its address. A client that gave it another id finds it by that one
/// alone.
fn derived_port(tables: &Tables, id: Uuid) -> Option<(MachineId, MacAddr)> {
    let mac = card_of_id(id)?;
    let machine = machine_of_card(tables, mac)?;
    let node = node_of(tables, machine)?;
    let card = NodeCard { node: &node, mac };
    (card.id() == id).then_some((machine, mac))
}

/// The machine that has a card with this address, or for which a client described one.
pub(super) fn machine_of_card(tables: &Tables, mac: MacAddr) -> Option<MachineId> {
    let booted = || {
        let mut machines = tables.all::<Machine>();
        machines.find(|machine| machine.boot_macs.contains(&mac))
    };
    described_port(tables, mac)
        .or_else(|| card_machine(tables, mac))
        .or_else(|| booted().map(|machine| machine.id))
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
