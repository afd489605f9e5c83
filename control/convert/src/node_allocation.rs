//! Node allocations.

use control_state::{CreateNodeAllocation, NodeAllocation};
use proto_public::metalmesh::admin::v1 as wire;
use proto_types::{NodeAllocationId, ProjectId};
use tonic::Status;
use uuid::Uuid;

use super::{meta, parse, parse_all, parse_opt, required};

/// A node allocation for the wire.
pub fn node_allocation(held: &NodeAllocation) -> wire::NodeAllocation {
    let fields = held.extra.iter();
    wire::NodeAllocation {
        id: held.id.to_string(),
        meta: meta(&held.meta),
        name: held.name.clone().unwrap_or_default(),
        owner: held
            .owner
            .map(|owner| owner.to_string())
            .unwrap_or_default(),
        resource_class: held.resource_class.to_string(),
        traits: held.traits.iter().map(ToString::to_string).collect(),
        candidates: held.candidates.iter().map(ToString::to_string).collect(),
        state: held.state.as_str().to_owned(),
        machine: held.machine.map(|id| id.to_string()).unwrap_or_default(),
        last_error: held.last_error.clone(),
        extra: fields
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    }
}

/// The command that creates a node allocation for an owner, or for an administrator.
///
/// # Errors
/// `invalid_argument`.
pub fn from_wish(
    owner: Option<ProjectId>,
    wish: Option<wire::NodeAllocationWish>,
) -> Result<CreateNodeAllocation, Status> {
    let wish = required("wish", wish)?;
    let id = Uuid::now_v7();
    let given = |text: String| (!text.is_empty()).then_some(text);
    let class = given(wish.resource_class);
    Ok(CreateNodeAllocation {
        id: NodeAllocationId::new(id),
        name: given(wish.name),
        owner,
        resource_class: parse_opt("wish.resource_class", class.as_ref())?,
        traits: parse_all("wish.traits", &wish.traits)?,
        candidates: parse_all("wish.candidates", &wish.candidates)?,
        backfill: parse_opt("wish.backfill", wish.backfill.as_ref())?,
        extra: wish.extra.into_iter().collect(),
        // The lower half of a version 7 UUID is random.
        seed: id.as_u64_pair().1,
    })
}

/// The id in a request that takes names too. `None` means that it is a name.
pub fn as_id(text: &str) -> Option<NodeAllocationId> {
    parse("allocation", text).ok()
}
