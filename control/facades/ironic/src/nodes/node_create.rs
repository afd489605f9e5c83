//! `POST /nodes` and `DELETE /nodes/{node}`.

use control_oslo::PolicyTarget;
use control_state::query::node_state;
use control_state::{DeleteMachine, EnrolNode, Tables};
use proto_types::{MachineId, ProjectId};
use serde_json::Value;
use uuid::Uuid;

use super::draft_links::resolve_links;
use super::node_checks::check_is_deletable;
use super::node_draft::{DraftBase, NodeDraft};
use super::node_object::{creatable, unset_object};
use super::node_update::shown;
use crate::access::SeenNode;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::check_names;
use crate::patch::ObjectReader;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::has_node_field;

/// The rule to enrol any node.
const CREATE: &str = "baremetal:node:create";
/// The rule to enrol a node of one's own.
const CREATE_OWN: &str = "baremetal:node:create:self_owned_node";
/// The rule to delete any node.
const DELETE: &str = "baremetal:node:delete";
/// The rule to delete a node of one's own.
const DELETE_OWN: &str = "baremetal:node:delete:self_owned_node";

/// `POST /nodes`.
pub(super) fn create<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let nothing = PolicyTarget::none();
        if !call.permits(CREATE_OWN, &nothing) {
            call.require(CREATE, &nothing)?;
        }
        let new_id = Uuid::new_v4();
        let command = call.read(|tables| enrolment(call, tables, new_id)).await?;
        let machine = command.machine;
        call.propose(command).await?;
        let shown = call.read(|tables| shown(call, tables, machine)).await?;
        let address = call.link(&format!("/nodes/{machine}"));
        Ok(IronicAnswer::created(shown, address))
    })
}

/// `DELETE /nodes/{node}`.
pub(super) fn delete<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node().await?;
        check_may_delete(call, &node)?;
        let state = node_state(&node.machine, node.record.as_deref(), call.now());
        check_is_deletable(&node, &state)?;
        call.propose(DeleteMachine { id: node.id() }).await?;
        Ok(IronicAnswer::no_content())
    })
}

fn check_may_delete(call: &IronicCall<'_>, node: &SeenNode) -> Result<(), IronicError> {
    let target = node.target();
    if !call.permits(DELETE, &target) {
        // The first rule names the refusal, as in Ironic.
        let is_own = call.permits(DELETE_OWN, &target);
        if !is_own {
            return Err(IronicError::forbidden(DELETE));
        }
    }
    // The command knows no project: whatever the policy says, a project deletes its own nodes alone.
    match call.caller.project() {
        Some(project) if node.owner() != Some(project) => Err(IronicError::forbidden(DELETE)),
        _ => Ok(()),
    }
}

fn enrolment(
    call: &IronicCall<'_>,
    tables: &Tables,
    new_id: Uuid,
) -> Result<EnrolNode, IronicError> {
    let object = created_object(call)?;
    let reader = ObjectReader::new(&object);
    if reader.text("driver")?.is_none() {
        return Err(IronicError::invalid("'driver' is a required property"));
    }
    let machine = MachineId::new(reader.uuid("uuid")?.unwrap_or(new_id));
    let mut draft = NodeDraft::parse(&object, &DraftBase::new_node(), call.now())?;
    if draft.lessee.is_some() {
        let text = "lessee: a new node has none: create the node, and then lease it: baremetal node set \
                    NODE --lessee PROJECT";
        return Err(IronicError::invalid(text));
    }
    draft.owner = owner_of_new(call.caller.project(), draft.owner)?;
    let owner = draft.owner;
    resolve_links(call, tables, &mut draft, owner)?;
    Ok(EnrolNode {
        machine,
        project: call.caller.project(),
        owner,
        resource_class: draft.resource_class,
        content: draft.content,
    })
}

/// The body over an object without values.
fn created_object(call: &IronicCall<'_>) -> Result<Value, IronicError> {
    let allowed = creatable();
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    ObjectReader::new(call.body).check_known(&allowed)?;
    let mut object = unset_object();
    if let Value::Object(body) = call.body {
        check_names(
            body.keys().map(String::as_str),
            call.version,
            has_node_field,
        )?;
        for (name, value) in body {
            object[name.as_str()] = value.clone();
        }
    }
    Ok(object)
}

/// The owner of a new node: a project enrols nodes of its own alone.
fn owner_of_new(
    caller: Option<ProjectId>,
    wanted: Option<ProjectId>,
) -> Result<Option<ProjectId>, IronicError> {
    let Some(project) = caller else {
        return Ok(wanted);
    };
    if wanted.is_none_or(|wanted| wanted == project) {
        return Ok(Some(project));
    }
    let text = "Cannot create a node as a project scoped admin with an owner other than your own \
                project.";
    Err(IronicError::invalid(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_enrol_nodes_of_their_own() {
        let project = |number| Some(ProjectId::new(Uuid::from_u128(number)));
        for (caller, wanted, expected) in [
            (None, None, Some(None)),
            (None, project(1), Some(project(1))),
            (project(1), None, Some(project(1))),
            (project(1), project(1), Some(project(1))),
            (project(1), project(2), None),
        ] {
            assert_eq!(owner_of_new(caller, wanted).ok(), expected);
        }
    }
}
