//! The relation of a caller's project to a machine, besides the rules of the policy.
//!
//! A rule may permit more than metalmesh does: an owner is permitted the verbs of a node that is
//! leased, and a policy file may permit them to everybody. The machine obeys the project that uses it,
//! and while nobody does, the one that may.

use control_state::{Machine, MachinePool};
use proto_types::ProjectId;

use crate::error::IronicError;

/// The project that has the machine, in whose name an order goes to its BMC. `None` means an
/// administrator's order, and also that of the project that may use a machine which nobody uses.
///
/// # Errors
/// 409 for a project that does not use the machine, while another one does or may.
pub(super) fn order_project(
    machine: &Machine,
    caller: Option<ProjectId>,
) -> Result<Option<ProjectId>, IronicError> {
    let Some(project) = caller else {
        return Ok(None);
    };
    if machine.is_held_by(project) {
        return Ok(Some(project));
    }
    let id = machine.id;
    let refuse = |rule: &str| Err(IronicError::conflict(format!("Node {id} {rule}")));
    if machine.allocation.is_some() && machine.is_leaving() {
        return refuse("is still on its way back from its last user: wait until it is available");
    }
    if machine.allocation.is_some() {
        return refuse("is in use by another project, which alone controls it");
    }
    match machine.tenure.pool() {
        MachinePool::Of(user) if user == project => Ok(None),
        MachinePool::Of(_) => refuse("is leased to another project until the end of the lease"),
        MachinePool::Shared => {
            refuse("is the site's: its administrators control it while nobody uses it")
        }
    }
}

/// Refuses the verbs of a node's life to a project that may not use the machine, and for hosts of pools
/// to everybody: claims decide on their life.
///
/// # Errors
/// 409.
pub(super) fn check_life(machine: &Machine, caller: Option<ProjectId>) -> Result<(), IronicError> {
    if let Some(pool) = &machine.pool {
        let id = machine.id;
        return Err(IronicError::conflict(format!(
            "Node {id} is a host of pool \"{pool}\": claims decide on its life (metalmesh claim, \
             metalmesh pool host)"
        )));
    }
    order_project(machine, caller).map(drop)
}

/// `true` if the caller uses the machine, or may use it while nobody does; administrators do.
pub(crate) fn may_use(machine: &Machine, caller: Option<ProjectId>) -> bool {
    order_project(machine, caller).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::access::SeenNode;

    const OWNER: &str = "00000000-0000-0000-0000-00000000000a";
    const LESSEE: &str = "00000000-0000-0000-0000-00000000000b";
    const OTHER: &str = "00000000-0000-0000-0000-00000000000c";

    fn project(text: &str) -> ProjectId {
        text.parse().unwrap()
    }

    /// `Some(true)` for an order in the project's name, `Some(false)` for one of an administrator,
    /// `None` for a refusal.
    fn decided(machine: &Machine, caller: Option<&str>) -> Option<bool> {
        let decided = order_project(machine, caller.map(project));
        decided.ok().map(|named| named.is_some())
    }

    #[test]
    fn a_free_machine_obeys_those_who_may_use_it() {
        for (tenure, by_owner, by_lessee, by_other) in [
            (json!({}), None, None, None),
            (json!({"owner": OWNER}), Some(false), None, None),
            (
                json!({"owner": OWNER, "lessee": LESSEE}),
                None,
                Some(false),
                None,
            ),
            (json!({"lessee": LESSEE}), None, Some(false), None),
        ] {
            let node = SeenNode::of_json(json!({"tenure": tenure}), None);
            let machine = &node.machine;
            for (caller, expected) in [
                (None, Some(false)),
                (Some(OWNER), by_owner),
                (Some(LESSEE), by_lessee),
                (Some(OTHER), by_other),
            ] {
                assert_eq!(decided(machine, caller), expected, "{tenure} {caller:?}");
                let caller = caller.map(project);
                assert_eq!(may_use(machine, caller), expected.is_some());
                assert_eq!(check_life(machine, caller).is_ok(), expected.is_some());
            }
        }
    }

    #[test]
    fn hosts_of_pools_live_by_claims() {
        let node = SeenNode::of_json(json!({"pool": "gpu"}), None);
        assert!(check_life(&node.machine, None).is_err());
        // Administrators may power them all the same.
        assert_eq!(decided(&node.machine, None), Some(false));
    }
}
