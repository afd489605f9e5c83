//! Allocations by id, by name and by node, and the rule by which a caller sees one at all.

use std::sync::Arc;

use control_oslo::PolicyTarget;
use control_state::query::named_allocation;
use control_state::{MachinePool, NodeAllocation, Tables};
use proto_types::NodeAllocationId;
use uuid::Uuid;

use crate::access::SeenNode;
use crate::error::IronicError;
use crate::request::IronicCall;

/// The rule without which an allocation does not exist for a caller.
const GET: &str = "baremetal:allocation:get";
/// The rule for all allocations.
const LIST_ALL: &str = "baremetal:allocation:list_all";

/// `true` if the rule permits the call on an allocation.
pub(super) fn is_permitted(call: &IronicCall<'_>, rule: &str, held: &NodeAllocation) -> bool {
    let owner = held.owner.map(|owner| owner.to_string());
    call.permits(rule, &PolicyTarget::allocation(owner.as_deref()))
}

/// `true` if the caller sees an allocation.
pub(super) fn is_seen(call: &IronicCall<'_>, held: &NodeAllocation) -> bool {
    is_permitted(call, GET, held)
}

/// The allocation of the path, if the caller sees it and the rule permits the call. Without a rule the
/// sight is enough.
///
/// # Errors
/// 404 for one that the caller does not see, as for one that does not exist; 403 if the rule refuses;
/// 409 for a name that several projects use.
pub(super) async fn found_allocation(
    call: &IronicCall<'_>,
    rule: Option<&str>,
) -> Result<Arc<NodeAllocation>, IronicError> {
    let ident = call.parameter("allocation");
    let found = call.read(|tables| {
        let unknown = || IronicError::not_found("Allocation", ident);
        let held = match Uuid::parse_str(ident) {
            Ok(id) => tables.get::<NodeAllocation>(&NodeAllocationId::new(id)),
            Err(_) => by_name(call, tables, ident)?,
        };
        let held = held.filter(|held| is_seen(call, held));
        held.cloned().ok_or_else(unknown)
    });
    let held = found.await?;
    match rule {
        Some(rule) if !is_permitted(call, rule, &held) => Err(IronicError::forbidden(rule)),
        _ => Ok(held),
    }
}

/// The allocation of a name: the project's own, else the only one among all, for callers that may see
/// all. Names are unique among those of one owner.
fn by_name<'a>(
    call: &IronicCall<'_>,
    tables: &'a Tables,
    name: &str,
) -> Result<Option<&'a Arc<NodeAllocation>>, IronicError> {
    let pool = call.caller.project().map(MachinePool::Of);
    let own = pool.and_then(|pool| named_allocation(tables, pool, name));
    if own.is_some() || !call.permits(LIST_ALL, &PolicyTarget::none()) {
        return Ok(own);
    }
    let all = tables.all::<NodeAllocation>();
    only(all.filter(|held| held.name.as_deref() == Some(name)), name)
}

fn only<'a>(
    mut named: impl Iterator<Item = &'a Arc<NodeAllocation>>,
    name: &str,
) -> Result<Option<&'a Arc<NodeAllocation>>, IronicError> {
    let first = named.next();
    if named.next().is_some() {
        let text = format!("Several projects have an allocation {name}: name the one by its UUID");
        return Err(IronicError::conflict(text));
    }
    Ok(first)
}

/// The allocation that holds a node, if the caller sees it.
///
/// # Errors
/// 404.
pub(super) fn allocation_of_node<'a>(
    call: &IronicCall<'_>,
    tables: &'a Tables,
    node: &SeenNode,
) -> Result<&'a Arc<NodeAllocation>, IronicError> {
    let id = node.machine.tenure.reserved_by;
    let held = id.and_then(|id| tables.get::<NodeAllocation>(&id));
    let held = held.filter(|held| is_seen(call, held));
    held.ok_or_else(|| {
        let ident = call.parameter("node");
        IronicError::not_found("Allocation for node", ident)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use control_state::{Meta, NodeAllocationState};
    use http::StatusCode;

    use super::*;

    fn held(id: u128) -> Arc<NodeAllocation> {
        Arc::new(NodeAllocation {
            id: NodeAllocationId::new(Uuid::from_u128(id)),
            meta: Meta::default(),
            name: Some("web".to_owned()),
            owner: None,
            resource_class: "gold".parse().unwrap(),
            traits: BTreeSet::new(),
            candidates: BTreeSet::new(),
            state: NodeAllocationState::Active,
            machine: None,
            last_error: String::new(),
            extra: BTreeMap::new(),
        })
    }

    #[test]
    fn a_name_means_one_allocation() {
        let all = [held(1), held(2)];
        for (count, expected) in [(0, Ok(None)), (1, Ok(Some(&all[0])))] {
            assert_eq!(only(all[..count].iter(), "web"), expected, "{count}");
        }
        let refused = only(all.iter(), "web").unwrap_err();
        assert_eq!(refused.status, StatusCode::CONFLICT);
    }
}
