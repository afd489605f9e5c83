//! The project that gets the machine of a deployment.

use control_state::{MachinePool, NodeAllocation, Tables};
use proto_types::ProjectId;

use crate::access::SeenNode;
use crate::error::IronicError;

/// The project that gets the machine: the caller's. An administrator's is the one that the node's
/// `instance_info` names, else the lessee, the owner, or that of the node allocation.
///
/// # Errors
/// 400 without one, and for one that may not use the machine.
pub(super) fn using_project(
    tables: &Tables,
    node: &SeenNode,
    wanted: Option<ProjectId>,
    caller: Option<ProjectId>,
) -> Result<ProjectId, IronicError> {
    let held = node.machine.tenure.reserved_by;
    let held = held.and_then(|id| tables.get::<NodeAllocation>(&id));
    let holder = held.and_then(|held| held.owner);
    chosen(node, wanted, caller, holder)
}

/// The same with the owner of the node allocation that holds the machine.
fn chosen(
    node: &SeenNode,
    wanted: Option<ProjectId>,
    caller: Option<ProjectId>,
    holder: Option<ProjectId>,
) -> Result<ProjectId, IronicError> {
    let id = node.id();
    let user = match node.machine.tenure.pool() {
        MachinePool::Of(user) => Some(user),
        MachinePool::Shared => None,
    };
    // A project cannot wish for another one in its place.
    let project = caller.or(wanted).or(user).or(holder);
    let Some(project) = project else {
        return Err(IronicError::invalid(format!(
            "Node {id} has neither owner nor lessee: set the project that gets it (baremetal node set \
             {id} --instance-info project_id=PROJECT)"
        )));
    };
    match user.filter(|user| *user != project) {
        None => Ok(project),
        Some(user) => Err(IronicError::invalid(format!(
            "Node {id} is for project {user}, which owns or leases it, and not for project {project}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OWNER: &str = "00000000-0000-0000-0000-00000000000a";
    const LESSEE: &str = "00000000-0000-0000-0000-00000000000b";
    const OTHER: &str = "00000000-0000-0000-0000-00000000000c";

    #[test]
    fn the_project_of_a_deployment() {
        let owned = json!({"owner": OWNER});
        let leased = json!({"owner": OWNER, "lessee": LESSEE});
        let site = json!({});
        for (tenure, wanted, caller, holder, expected) in [
            (&owned, None, Some(OWNER), None, Some(OWNER)),
            (&owned, Some(OTHER), Some(OWNER), None, Some(OWNER)),
            (&owned, None, None, None, Some(OWNER)),
            (&owned, Some(OTHER), None, None, None),
            (&leased, None, None, None, Some(LESSEE)),
            (&leased, Some(OWNER), None, None, None),
            (&leased, None, Some(OWNER), None, None),
            (&site, None, None, None, None),
            (&site, Some(OTHER), None, None, Some(OTHER)),
            (&site, None, None, Some(OTHER), Some(OTHER)),
        ] {
            let node = SeenNode::of_json(json!({ "tenure": tenure }), None);
            let id = |text: &str| text.parse::<ProjectId>().unwrap();
            let found = chosen(&node, wanted.map(id), caller.map(id), holder.map(id));
            assert_eq!(
                found.ok(),
                expected.map(id),
                "{tenure} {wanted:?} {caller:?}"
            );
        }
    }
}
