//! Checks of the fields of a node.

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;
use uuid::Uuid;

use crate::fields::check_url_name;
use crate::machine::entity::Machine;
use crate::node::apply::ports::check_ports;
use crate::node::entity::{
    DocumentKind, JsonFields, NODE_BYTES_MAX, NodeContent, NodeDocument, NodeStage,
};
use crate::pool::entity::PoolHost;
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Longest name of a node, characters; a longer one is refused.
const NODE_NAME_MAX: usize = 255;
/// Longest name of a value of free form, bytes; a longer one is refused.
const FIELD_NAME_MAX: usize = 255;

/// Refuses fields that break a rule, or that another node has, after [`check_size`]. `before` are those
/// that the node has now: what does not change is not checked against other objects again.
pub(super) fn check_content(
    tables: &Tables,
    machine: &Machine,
    before: &NodeContent,
    content: &NodeContent,
) -> CheckResult {
    check_unique(tables, machine.id, content)?;
    check_relations(tables, machine.id, before, content)?;
    check_ports(tables, machine.id, before, content)?;
    match &content.stage {
        Some(stage) if before.stage.as_ref() != Some(stage) => check_stage(tables, machine, stage),
        _ => Ok(()),
    }
}

/// Refuses fields that are too long, before anything of them is copied.
pub(super) fn check_size(content: &NodeContent) -> CheckResult {
    for (name, fields) in content.free_fields() {
        check_field_names(name, fields)?;
    }
    if content.bytes() <= NODE_BYTES_MAX {
        return Ok(());
    }
    let rule = format!("must have at most {NODE_BYTES_MAX} bytes in all free texts and values");
    Err(Error::invalid("content", rule))
}

/// Refuses names of values that are too long.
pub(super) fn check_field_names(field: &str, fields: &JsonFields) -> CheckResult {
    if fields.keys().all(|name| name.len() <= FIELD_NAME_MAX) {
        return Ok(());
    }
    let rule = format!("must have names of at most {FIELD_NAME_MAX} bytes");
    Err(Error::invalid(field, rule))
}

/// Refuses a name or an instance that another node has.
fn check_unique(tables: &Tables, id: MachineId, content: &NodeContent) -> CheckResult {
    let nodes = &tables.index().nodes;
    let is_other = |holder: Option<&MachineId>| holder.is_some_and(|holder| *holder != id);
    if let Some(name) = &content.name {
        check_url_name("name", name, NODE_NAME_MAX)?;
        if is_other(nodes.names.get(name)) {
            return Err(Error::already_exists("node", name));
        }
    }
    if let Some(instance) = &content.instance
        && is_other(nodes.instances.get(instance))
    {
        return Err(Error::already_exists("instance", instance));
    }
    Ok(())
}

/// Refuses a parent or a chassis that does not exist.
fn check_relations(
    tables: &Tables,
    id: MachineId,
    before: &NodeContent,
    content: &NodeContent,
) -> CheckResult {
    let parent = content.parent.filter(|_| content.parent != before.parent);
    if let Some(parent) = parent {
        if parent == id {
            return Err(Error::invalid("parent", "must be another node"));
        }
        tables.require::<Machine>(&parent)?;
    }
    let is_new = content.chassis != before.chassis;
    let chassis = content.chassis.filter(|_| is_new);
    chassis.map_or(Ok(()), |chassis| check_chassis(tables, chassis))
}

fn check_chassis(tables: &Tables, chassis: Uuid) -> CheckResult {
    let found = tables.get::<NodeDocument>(&chassis);
    if found.is_some_and(|found| found.kind == DocumentKind::Chassis) {
        Ok(())
    } else {
        Err(Error::not_found(DocumentKind::Chassis.as_str(), chassis))
    }
}

/// Refuses a new stage that contradicts what the machine is used for: the phase of a machine in use says
/// its provision state, and a stage would take the machine away from who has it.
fn check_stage(tables: &Tables, machine: &Machine, stage: &NodeStage) -> CheckResult {
    let (id, state) = (machine.id, stage.state.as_str());
    let is_used = machine.allocation.is_some() && !machine.is_leaving();
    let host = tables.get::<PoolHost>(&id);
    let is_bound = host.is_some_and(|host| host.binding.is_some());
    let (code, why) = match stage.state.is_in_use() {
        true if is_used => return Ok(()),
        true => (ErrorCode::MachineNotAllocated, "is not in use"),
        false if machine.allocation.is_some() => (ErrorCode::MachineAllocated, "is allocated"),
        false if machine.tenure.reserved_by.is_some() => {
            (ErrorCode::MachineReserved, "is held by a node allocation")
        }
        false if is_bound => (ErrorCode::HostBound, "is the host of a claim"),
        false => return Ok(()),
    };
    let message = format!("machine \"{id}\" {why}: its node cannot become \"{state}\"");
    Err(Error::new(code, message).object("machine", id))
}
