//! New allocations, changes and their ends.

use std::sync::Arc;

use control_gate::refusal::of_state;
use control_oslo::PolicyTarget;
use control_state::{
    CreateNodeAllocation, DeleteNodeAllocation, Lock, NodeAllocation, Tables, UpdateNodeAllocation,
};
use http::StatusCode;
use proto_types::{NodeAllocationId, ProjectId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::allocation_request::{AllocationRequest, extra};
use super::found_allocation::found_allocation;
use crate::access::{SeenNode, seen_node};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::patch::{JsonPatch, ObjectReader, is_logical_name};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{allocation, instance_uuid};

/// Fields that a patch may change.
const PATCHED: [&str; 2] = ["name", "extra"];

/// `POST /allocations`.
pub(super) fn create<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:allocation:create", &PolicyTarget::none())?;
        let request = AllocationRequest::parse(call.body)?;
        let owner = request.owner(call.caller.project())?;
        let found = call.read(|tables| creation(call, tables, &request, owner));
        let op = found.await?;
        let reply = call.propose(op).await.map_err(of_request)?;
        let held = reply.node_allocation().map_err(of_state)?;
        let address = call.link(&format!("/allocations/{}", held.id));
        Ok(IronicAnswer::created(allocation(&held, call.base), address))
    })
}

/// `PATCH /allocations/{allocation}`.
pub(super) fn update<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let held = found_allocation(call, Some("baremetal:allocation:update")).await?;
        let patch = JsonPatch::parse(call.body)?;
        let op = change(&held, &patch, call.base, call.caller.project())?;
        let reply = call.propose(op).await?;
        let changed = reply.node_allocation().map_err(of_state)?;
        Ok(IronicAnswer::ok(allocation(&changed, call.base)))
    })
}

/// `DELETE /allocations/{allocation}`.
pub(super) fn delete<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let held = found_allocation(call, Some("baremetal:allocation:delete")).await?;
        end(call, &held).await
    })
}

/// Ends an allocation, once a rule permitted it.
///
/// # Errors
/// 409 while its machine is in use.
pub(super) async fn end(
    call: &IronicCall<'_>,
    held: &NodeAllocation,
) -> Result<IronicAnswer, IronicError> {
    let op = DeleteNodeAllocation {
        id: held.id,
        project: call.caller.project(),
    };
    call.propose(op).await?;
    Ok(IronicAnswer::no_content())
}

/// The command for a request, with the nodes that it names.
fn creation(
    call: &IronicCall<'_>,
    tables: &Tables,
    request: &AllocationRequest<'_>,
    owner: Option<ProjectId>,
) -> Result<CreateNodeAllocation, IronicError> {
    let seen = |ident: &str| {
        let node = seen_node(tables, call.policy, call.caller, ident);
        // As in Ironic: the nodes are a part of the request, and not its object.
        node.map_err(|error| IronicError::invalid(error.text))
    };
    let used = request.node.map(seen).transpose()?;
    let candidates = request.candidates.iter().copied();
    let candidates = candidates.map(|ident| seen(ident).map(|node| node.id()));
    // Of a machine in use the instance has an id already.
    let of_node = used.as_ref().and_then(instance_uuid);
    let id = request.id.or(of_node).unwrap_or_else(Uuid::new_v4);
    Ok(CreateNodeAllocation {
        id: NodeAllocationId::new(id),
        name: request.name.map(str::to_owned),
        owner,
        resource_class: request.class.clone(),
        traits: request.traits.clone(),
        candidates: candidates.collect::<Result<_, _>>()?,
        backfill: used.as_ref().map(SeenNode::id),
        extra: request.extra.clone(),
        seed: Uuid::new_v4().as_u64_pair().1,
    })
}

/// A refusal of a node that the owner has no relation to: it is a part of the request.
fn of_request(error: IronicError) -> IronicError {
    match error.status {
        StatusCode::NOT_FOUND => IronicError::invalid(error.text),
        _ => error,
    }
}

/// The command for a patch.
///
/// # Errors
/// 400 for other fields, and for values that break their rules.
fn change(
    held: &Arc<NodeAllocation>,
    patch: &JsonPatch,
    base: &str,
    project: Option<ProjectId>,
) -> Result<UpdateNodeAllocation, IronicError> {
    patch.check_roots(&PATCHED)?;
    let shown = allocation(held, base);
    let mut fields = json!({ "name": shown["name"], "extra": shown["extra"] });
    patch.apply(&mut fields)?;
    Ok(UpdateNodeAllocation {
        id: held.id,
        project,
        lock: Lock::Client(held.meta.updated_at),
        name: Some(name(&fields)?),
        extra: Some(extra(fields.get("extra").unwrap_or(&Value::Null))?),
    })
}

/// The name of a patched object; empty removes it.
fn name(fields: &Value) -> Result<String, IronicError> {
    let name = ObjectReader::new(fields).text("name")?.unwrap_or_default();
    if name.is_empty() || is_logical_name(name) {
        return Ok(name.to_owned());
    }
    let text = format!("Cannot update allocation with invalid name '{name}'");
    Err(IronicError::invalid(text))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use control_state::{Meta, NodeAllocationState};
    use proto_types::Timestamp;

    use super::*;

    fn held() -> Arc<NodeAllocation> {
        Arc::new(NodeAllocation {
            id: NodeAllocationId::new(Uuid::from_u128(1)),
            meta: Meta {
                updated_at: Timestamp::from_ms(7),
                ..Meta::default()
            },
            name: Some("al1".to_owned()),
            owner: None,
            resource_class: "gold".parse().unwrap(),
            traits: BTreeSet::new(),
            candidates: BTreeSet::new(),
            state: NodeAllocationState::Active,
            machine: None,
            last_error: String::new(),
            extra: [("a".to_owned(), "json:1".to_owned())].into(),
        })
    }

    fn changed(patch: Value) -> Result<(String, BTreeMap<String, String>), String> {
        let patch = JsonPatch::parse(&patch).map_err(|error| error.text)?;
        let op = change(&held(), &patch, "http://c", None).map_err(|error| error.text)?;
        assert_eq!(op.lock, Lock::Client(Timestamp::from_ms(7)));
        Ok((op.name.unwrap(), op.extra.unwrap()))
    }

    #[test]
    fn patches_change_name_and_fields() {
        let stored = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
            pairs.iter().map(owned).collect()
        };
        let one = stored(&[("a", "json:1")]);
        for (patch, name, extra) in [
            (json!([]), "al1", one.clone()),
            (
                json!([{"op": "add", "path": "/extra/q", "value": "x"}]),
                "al1",
                stored(&[("a", "json:1"), ("q", "x")]),
            ),
            (
                json!([{"op": "replace", "path": "/name", "value": "al2"}]),
                "al2",
                one.clone(),
            ),
            (json!([{"op": "remove", "path": "/name"}]), "", one.clone()),
            (
                json!([{"op": "replace", "path": "/name", "value": null}]),
                "",
                one,
            ),
            (
                json!([{"op": "remove", "path": "/extra"}]),
                "al1",
                BTreeMap::new(),
            ),
        ] {
            assert_eq!(
                changed(patch.clone()),
                Ok((name.to_owned(), extra)),
                "{patch}"
            );
        }
    }

    #[test]
    fn other_changes_are_refused() {
        for (patch, part) in [
            (
                json!([{"op": "replace", "path": "/state", "value": "active"}]),
                "Cannot patch",
            ),
            (
                json!([{"op": "add", "path": "/owner", "value": "x"}]),
                "Cannot patch",
            ),
            (
                json!([{"op": "replace", "path": "/name", "value": "a b"}]),
                "invalid name",
            ),
            (
                json!([{"op": "replace", "path": "/name", "value": 1}]),
                "must be a text",
            ),
            (
                json!([{"op": "replace", "path": "/extra", "value": 1}]),
                "must be an object",
            ),
        ] {
            let refused = changed(patch.clone()).unwrap_err();
            assert!(refused.contains(part), "{patch}: {refused}");
        }
    }
}
