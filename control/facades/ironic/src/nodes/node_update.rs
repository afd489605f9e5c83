//! `PATCH /nodes/{node}`.

use control_oslo::PolicyTarget;
use control_state::query::{NodeState, node_state};
use control_state::{ProvisionState, Tables, UpdateNode};
use proto_types::{LeaseId, MachineId};
use uuid::Uuid;

use super::draft_links::resolve_links;
use super::node_checks::{check_draft, check_is_changeable};
use super::node_display::NodeDisplay;
use super::node_draft::{DraftBase, NodeDraft};
use super::node_object::{node_object, patchable};
use super::tenure_change::{TenureCaller, check_instance, tenure_parts};
use super::update_rules::update_rules;
use crate::access::{SeenNode, find_node, seen_node};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::life::may_use;
use crate::listing::{asked_flag, check_names};
use crate::patch::JsonPatch;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{has_node_field, stored};

/// The rule for another owner of a node that is deployed.
const OWNER_PROVISIONED: &str = "baremetal:node:update_owner_provisioned";
/// The parameter that takes back which interfaces clients chose.
const RESET_INTERFACES: &str = "reset_interfaces";

/// `PATCH /nodes/{node}`. A change that is refused changes nothing: it is one command.
pub(super) fn update<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let patch = JsonPatch::parse(call.body)?;
        // Drawn before the read, which is a pure function of the state.
        let lease = LeaseId::new(Uuid::now_v7());
        let change = call.read(|tables| planned(call, tables, &patch, lease));
        let change = change.await?;
        let machine = change.machine;
        if change != UpdateNode::of(machine) {
            call.propose(change).await?;
        }
        let shown = call.read(|tables| shown(call, tables, machine));
        Ok(IronicAnswer::ok(shown.await?))
    })
}

/// A node after a change, which its caller may see even if it is no more its own.
pub(super) fn shown(
    call: &IronicCall<'_>,
    tables: &Tables,
    machine: MachineId,
) -> Result<serde_json::Value, IronicError> {
    let id = machine.to_string();
    let node = find_node(tables, &id).ok_or_else(|| IronicError::not_found("Node", &id))?;
    Ok(NodeDisplay::new(call, tables).full(&node))
}

fn planned(
    call: &IronicCall<'_>,
    tables: &Tables,
    patch: &JsonPatch,
    lease: LeaseId,
) -> Result<UpdateNode, IronicError> {
    let node = seen_node(tables, call.policy, call.caller, call.parameter("node"))?;
    for rule in update_rules(patch) {
        call.require(rule, &node.target())?;
    }
    check_fields(call, patch)?;
    check_instance(&node, call.caller.writer(), patch)?;
    let now = call.now();
    let state = node_state(&node.machine, node.record.as_deref(), now);
    check_is_changeable(&node, &state, patch)?;
    let mut draft = drafted(call, &node, patch)?;
    if changes_hands(&node, &draft) {
        draft = drafted(call, &node.after_use(), patch)?;
    }
    check_draft(&node, &state, &draft, call.caller.project())?;
    check_owner(call, &node, &state, &draft)?;
    resolve_links(call, tables, &mut draft, node.owner())?;
    let project = call.caller.writer();
    let caller = TenureCaller {
        project,
        now,
        lease,
        confirms: project.is_none() && patch.roots().contains("owner"),
    };
    let mut change = tenure_parts(&node, &draft, caller)?;
    if draft.content != *stored(&node) {
        change.node = Some(call.node_change(&node, draft.content));
    }
    Ok(change)
}

/// The node as the patch makes it.
fn drafted(
    call: &IronicCall<'_>,
    node: &SeenNode,
    patch: &JsonPatch,
) -> Result<NodeDraft, IronicError> {
    let is_bmc_shown = may_use(&node.machine, call.caller.project());
    let mut object = node_object(node, is_bmc_shown);
    patch.apply(&mut object)?;
    let mut draft = NodeDraft::parse(&object, &DraftBase::of(node), call.now())?;
    if asked_flag(call, RESET_INTERFACES)?.unwrap_or(false) {
        draft.content.interfaces.clear();
    }
    Ok(draft)
}

/// `true` if the node comes into other hands, which begin without the instance of the ones before: of it
/// stays only what the client says anew. A use that goes on keeps its own.
fn changes_hands(node: &SeenNode, draft: &NodeDraft) -> bool {
    let is_used = node.machine.allocation.is_some() && !node.machine.is_leaving();
    let is_same = draft.owner == node.owner() && draft.lessee == node.lessee();
    !is_used && !is_same
}

/// Refuses fields that cannot be changed, or that the microversion does not have.
fn check_fields(call: &IronicCall<'_>, patch: &JsonPatch) -> Result<(), IronicError> {
    if patch.roots().contains("traits") {
        let text = "Cannot update node traits via node patch. Node traits should be updated via the \
                    node traits API.";
        return Err(IronicError::invalid(text));
    }
    let allowed = patchable();
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    patch.check_roots(&allowed)?;
    check_names(patch.roots().into_iter(), call.version, has_node_field)?;
    let resets = asked_flag(call, RESET_INTERFACES)?.unwrap_or(false);
    if resets && patch.value_of("driver").is_none() {
        let text =
            "The reset_interfaces parameter can only be used when changing the node's driver.";
        return Err(IronicError::invalid(text));
    }
    Ok(())
}

/// Refuses another owner of a deployed node to callers that may not change it there.
fn check_owner(
    call: &IronicCall<'_>,
    node: &SeenNode,
    state: &NodeState,
    draft: &NodeDraft,
) -> Result<(), IronicError> {
    let is_other = draft.owner != node.owner();
    let is_deployed = state.state == ProvisionState::Active;
    let target: PolicyTarget<'_> = node.target();
    if !is_other || !is_deployed || call.permits(OWNER_PROVISIONED, &target) {
        return Ok(());
    }
    let id = node.id();
    let text = format!("Cannot update owner of node \"{id}\" while it is in state \"active\".");
    Err(IronicError::conflict(text))
}
