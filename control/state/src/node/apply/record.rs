//! Records of nodes: enrolment, changes of their fields, and their end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, ProjectId};

use crate::machine::entity::Machine;
use crate::meta::{Meta, check_generation};
use crate::node::apply::content::{check_content, check_size};
use crate::node::apply::writer::{check_writer, is_by_user, replaced_extra};
use crate::node::command::{EnrolNode, SetNode};
use crate::node::entity::{NodeContent, NodeRecord};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};
use crate::tenancy::entity::Project;

/// Most enrolled machines of the site that no agent has seen yet; one more is refused. A site enrols a
/// whole delivery before it is powered on.
const ENROLLED_MAX: usize = 10_000;
/// The same for those that one project owns.
const ENROLLED_OF_PROJECT_MAX: usize = 1_000;

/// Makes a machine a node with fields of its own, also one that nobody has seen yet.
pub(crate) fn enrol(tx: &mut Tx<'_>, op: &EnrolNode) -> ApplyResult {
    check_size(&op.content)?;
    if op.project.is_some() && op.owner != op.project {
        let rule = "must be the project that enrols the machine";
        return Err(Error::invalid("owner", rule));
    }
    let id = op.machine;
    // An id by which another node is found would stand for two nodes.
    let is_alias = tx.tables().index().nodes.aliases.contains_key(&id.uuid());
    if is_alias || tx.get::<NodeRecord>(&id).is_some() {
        return Err(Error::already_exists("node", id));
    }
    let known = tx
        .get::<Machine>(&id)
        .map(|machine| Machine::clone(machine));
    let is_new = known.is_none();
    let mut machine = match known {
        Some(machine) => {
            check_owner(&machine, op.owner)?;
            machine
        }
        None => unseen_machine(tx, op)?,
    };
    let content = ordered(&op.content);
    check_content(tx.tables(), &machine, &NodeContent::default(), &content)?;
    machine.enrolled = true;
    machine.withheld = content.withholds();
    if let Some(class) = &op.resource_class {
        machine.capability.resource_class = Some(class.clone());
    }
    if is_new {
        tx.create(machine)?;
    } else {
        tx.save(machine);
    }
    tx.create(new_record(id, content)).map(Reply::NodeRecord)
}

/// Replaces the fields of a node.
pub(crate) fn set(tx: &mut Tx<'_>, op: &SetNode) -> ApplyResult {
    check_expected(tx.tables(), op)?;
    write(tx, op).map(Reply::NodeRecord)
}

/// Refuses the change of a node that was changed since the caller read it.
pub(crate) fn check_expected(tables: &Tables, op: &SetNode) -> CheckResult {
    let known = tables.get::<NodeRecord>(&op.machine);
    let generation = known.map_or(0, |record| record.meta.generation);
    let key = op.machine.to_string();
    check_generation("node", &key, generation, Some(op.expected))
}

/// Replaces the fields of a node, of whatever generation it is.
pub(crate) fn write(tx: &mut Tx<'_>, op: &SetNode) -> Result<Arc<NodeRecord>, Error> {
    check_size(&op.content)?;
    let mut machine: Machine = tx.require(&op.machine)?;
    let known = tx
        .get::<NodeRecord>(&op.machine)
        .map(|record| NodeRecord::clone(record));
    let is_new = known.is_none();
    let before = known.unwrap_or_else(|| new_record(op.machine, NodeContent::default()));
    let content = ordered(&op.content);
    check_writer(&machine, op.project, &before.content, &content)?;
    check_content(tx.tables(), &machine, &before.content, &content)?;
    let is_by_user = is_by_user(&machine, op.project);
    let record = NodeRecord {
        replaced_extra: replaced_extra(&before, &content.extra, is_by_user),
        content,
        ..before
    };
    // Somebody takes care of it: it is not forgotten when it does not register.
    machine.enrolled |= machine.is_stranger();
    machine.withheld = record.content.withholds();
    tx.save(machine);
    if is_new {
        tx.create(record)
    } else {
        Ok(tx.update(record))
    }
}

/// Deletes the record of a machine that is deleted. Its parts are parts of nothing afterwards.
pub(crate) fn forget_node(tx: &mut Tx<'_>, machine: MachineId) {
    tx.delete::<NodeRecord>(&machine);
    move_children(tx, machine, None);
}

/// Gives the parts of a node to another one.
pub(super) fn move_children(tx: &mut Tx<'_>, from: MachineId, to: Option<MachineId>) {
    let children = tx.tables().index().nodes.children.get(&from);
    for child in children.cloned().unwrap_or_default() {
        if let Ok(mut record) = tx.require::<NodeRecord>(&child) {
            record.content.parent = to;
            tx.update(record);
        }
    }
}

fn new_record(machine: MachineId, content: NodeContent) -> NodeRecord {
    NodeRecord {
        machine,
        meta: Meta::default(),
        alias: None,
        content,
        replaced_extra: BTreeMap::new(),
    }
}

/// The content with its port groups in the order of their ids.
fn ordered(content: &NodeContent) -> NodeContent {
    let mut content = content.clone();
    content.groups.sort_by_key(|group| group.id);
    content
}

/// Refuses to enrol a machine that is known for a project that does not own it: a project that learned
/// the id of a machine would get it.
fn check_owner(machine: &Machine, owner: Option<ProjectId>) -> CheckResult {
    let other = owner.filter(|owner| machine.tenure.owner != Some(*owner));
    let Some(other) = other else {
        return Ok(());
    };
    let id = machine.id;
    let hint = format!(
        "an administrator enrols it without an owner, and sets the owner afterwards: metalmesh machine \
         owner set {id} {other}"
    );
    Err(Error::already_exists("machine", id).hint(hint))
}

/// A machine that nobody has seen yet.
fn unseen_machine(tx: &Tx<'_>, op: &EnrolNode) -> Result<Machine, Error> {
    if let Some(owner) = op.owner {
        tx.tables().require::<Project>(&owner)?;
    }
    check_room(tx.tables(), op.owner)?;
    let mut machine = Machine::seen(op.machine, None, tx.now);
    machine.tenure.owner = op.owner;
    machine.unconfirmed = op.project.is_some();
    Ok(machine)
}

/// Refuses one more enrolled machine beyond the bound of its owner.
fn check_room(tables: &Tables, owner: Option<ProjectId>) -> CheckResult {
    let max = owner.map_or(ENROLLED_MAX, |_| ENROLLED_OF_PROJECT_MAX);
    let unseen = tables.index().nodes.unseen.get(&owner);
    if unseen.map_or(0, BTreeSet::len) < max {
        return Ok(());
    }
    let whose = owner.map_or_else(
        || "the site".to_owned(),
        |owner| format!("project \"{owner}\""),
    );
    let message = format!("{max} enrolled machines of {whose} were never seen by an agent");
    let hint = "boot them from the network, or delete those that are not there: metalmesh machine free \
                MACHINE -A";
    Err(Error::new(ErrorCode::TooMany, message).hint(hint))
}
