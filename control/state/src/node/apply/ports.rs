//! Checks of the ports, port groups and virtual interfaces of a node.

use std::collections::BTreeSet;

use proto_errors::Error;
use proto_types::{MacAddr, MachineId};
use uuid::Uuid;

use crate::fields::check_url_name;
use crate::node::entity::{
    NODE_GROUPS_MAX, NODE_PORTS_MAX, NODE_VIFS_MAX, NodeContent, NodePort, NodePortGroup,
};
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Longest name of a port or port group, bytes; a longer one is refused.
const PORT_NAME_MAX: usize = 255;

/// Refuses ports, port groups and virtual interfaces that are too many, that name what is not there, or
/// that have an id, a name or an address of another node's.
pub(super) fn check_ports(
    tables: &Tables,
    id: MachineId,
    before: &NodeContent,
    content: &NodeContent,
) -> CheckResult {
    for (field, count, max) in [
        ("ports", content.ports.len(), NODE_PORTS_MAX),
        ("groups", content.groups.len(), NODE_GROUPS_MAX),
        ("vifs", content.vifs.len(), NODE_VIFS_MAX),
    ] {
        if count > max {
            return Err(Error::invalid(field, format!("must be at most {max}")));
        }
    }
    let groups = check_groups(tables, id, &content.groups)?;
    let mut taken = TakenPortNames::default();
    for (mac, port) in &content.ports {
        let is_new = !before.ports.contains_key(mac);
        check_address(tables, id, *mac, is_new)?;
        if port.group.is_some_and(|group| !groups.contains(&group)) {
            let rule = format!("of port \"{mac}\" must be a port group of the node");
            return Err(Error::invalid("portgroup", rule));
        }
        check_port(tables, id, port, &mut taken)?;
    }
    Ok(())
}

/// Ids and names that a node has given out already.
#[derive(Debug, Default)]
struct TakenPortNames {
    ids: BTreeSet<Uuid>,
    names: BTreeSet<String>,
}

/// Refuses an address that another node has described, or that is a card of another machine: it would be
/// a port of two nodes, and whoever enrolled the second one could describe somebody else's card.
fn check_address(tables: &Tables, id: MachineId, mac: MacAddr, is_new: bool) -> CheckResult {
    let index = tables.index();
    let described = index.nodes.ports.get(&mac);
    let is_described = described.is_some_and(|holder| *holder != id);
    let mut cards = index.card_machines.get(&mac).into_iter().flatten();
    // A card that was moved meanwhile does not keep the node from other changes.
    let is_foreign = is_new && cards.any(|machine| *machine != id);
    if is_described || is_foreign {
        Err(Error::already_exists("port", mac))
    } else {
        Ok(())
    }
}

fn check_port(
    tables: &Tables,
    id: MachineId,
    port: &NodePort,
    taken: &mut TakenPortNames,
) -> CheckResult {
    let nodes = &tables.index().nodes;
    if let Some(port_id) = port.id {
        let holder = nodes.port_ids.get(&port_id);
        let is_other = holder.is_some_and(|(machine, _)| *machine != id);
        if is_other || !taken.ids.insert(port_id) {
            return Err(Error::already_exists("port", port_id));
        }
    }
    if port.name.is_empty() {
        return Ok(());
    }
    check_port_name(&port.name)?;
    let holder = nodes.port_names.get(&port.name);
    let is_other = holder.is_some_and(|(machine, _)| *machine != id);
    if is_other || !taken.names.insert(port.name.clone()) {
        return Err(Error::already_exists("port", &port.name));
    }
    Ok(())
}

fn check_port_name(name: &str) -> CheckResult {
    let is_shown = name.len() <= PORT_NAME_MAX && !name.chars().any(char::is_control);
    if is_shown && Uuid::try_parse(name).is_err() {
        return Ok(());
    }
    let rule =
        format!("of a port must have at most {PORT_NAME_MAX} printable bytes, and be no UUID");
    Err(Error::invalid("name", rule))
}

/// Checks the port groups; the answer is their ids.
fn check_groups(
    tables: &Tables,
    id: MachineId,
    groups: &[NodePortGroup],
) -> Result<BTreeSet<Uuid>, Error> {
    let nodes = &tables.index().nodes;
    let mut taken = TakenPortNames::default();
    for group in groups {
        let holder = nodes.groups.get(&group.id);
        let is_other = holder.is_some_and(|machine| *machine != id);
        if is_other || !taken.ids.insert(group.id) {
            return Err(Error::already_exists("portgroup", group.id));
        }
        if group.name.is_empty() {
            continue;
        }
        check_url_name("name", &group.name, PORT_NAME_MAX)?;
        let holder = nodes.group_names.get(&group.name);
        let is_other = holder.is_some_and(|(machine, _)| *machine != id);
        if is_other || !taken.names.insert(group.name.clone()) {
            return Err(Error::already_exists("portgroup", &group.name));
        }
    }
    Ok(taken.ids)
}
