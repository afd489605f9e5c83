//! The commands that follow from another owner, lessee or resource class of a node.

use control_state::{
    ClassChange, EndLease, GrantLease, LEASE_MS_MAX, LeaseEnder, Op, SetMachineCapability,
    SetMachineOwner,
};
use proto_types::{LeaseId, ProjectId, Timestamp};

use super::node_draft::NodeDraft;
use crate::access::SeenNode;
use crate::error::IronicError;

/// The remark on leases that clients of this API grant.
const COMMENT: &str = "by Ironic's API";

/// The caller of a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct TenureCaller {
    /// Its project. `None` means an administrator of the site.
    pub(super) project: Option<ProjectId>,
    /// The time of the change.
    pub(super) now: Timestamp,
    /// The id of the lease, if one is granted.
    pub(super) lease: LeaseId,
}

/// The commands, in the order in which they are to be proposed.
///
/// # Errors
/// 409 if the lessee cannot change as long as somebody uses the node, or nobody owns it.
pub(super) fn tenure_commands(
    node: &SeenNode,
    draft: &NodeDraft,
    caller: TenureCaller,
) -> Result<Vec<Op>, IronicError> {
    let machine = node.id();
    let mut commands: Vec<Op> = Vec::new();
    // The owner does not change under a lease, so that a lease ends before.
    if draft.lessee != node.lessee() && node.lessee().is_some() {
        commands.push(end_lease(node, caller)?.into());
    }
    if draft.owner != node.owner() {
        let owner = draft.owner;
        commands.push(SetMachineOwner { machine, owner }.into());
    }
    if let Some(lessee) = draft.lessee.filter(|_| draft.lessee != node.lessee()) {
        commands.push(grant_lease(node, lessee, draft.owner, caller)?.into());
    }
    let class = &node.machine.capability.resource_class;
    if draft.resource_class != *class {
        let command = SetMachineCapability {
            machine,
            project: caller.project,
            resource_class: match &draft.resource_class {
                Some(class) => ClassChange::Set(class.clone()),
                None => ClassChange::Clear,
            },
            traits: None,
        };
        commands.push(command.into());
    }
    Ok(commands)
}

fn end_lease(node: &SeenNode, caller: TenureCaller) -> Result<EndLease, IronicError> {
    let id = node.id();
    // The end of a lease takes the machine away from its user, which no change of a field should do.
    let is_used = node.machine.allocation.is_some() && !node.machine.is_leaving();
    if is_used || node.machine.tenure.lessee.is_none() {
        return Err(IronicError::conflict(format!(
            "lessee: node {id} is in use by its lessee: undeploy it first: baremetal node undeploy {id}"
        )));
    }
    Ok(EndLease {
        machine: id,
        by: caller
            .project
            .map_or(LeaseEnder::Administrator, LeaseEnder::Project),
        lease: None,
        reason: COMMENT.to_owned(),
    })
}

fn grant_lease(
    node: &SeenNode,
    lessee: ProjectId,
    owner: Option<ProjectId>,
    caller: TenureCaller,
) -> Result<GrantLease, IronicError> {
    let id = node.id();
    let owner = owner.ok_or_else(|| {
        IronicError::conflict(format!(
            "lessee: node {id} has no owner, which leases it: set the owner first: baremetal node set \
             {id} --owner PROJECT"
        ))
    })?;
    Ok(GrantLease {
        id: caller.lease,
        machine: id,
        // The state refuses another project than the owner.
        project: caller.project.unwrap_or(owner),
        lessee,
        expires_at: caller.now.plus_ms(LEASE_MS_MAX),
        extendable_until: None,
        warning_ms: None,
        comment: COMMENT.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::nodes::node_draft::DraftBase;
    use crate::nodes::node_object::node_object;

    const ONE: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";
    const TWO: &str = "f11853c7-fa9c-4db3-a477-c9d8e0dbbf13";
    const THREE: &str = "ae64129e-b188-4662-b014-4127f4366ee6";

    fn commands(
        machine: Value,
        changes: &[(&str, Value)],
        project: Option<&str>,
    ) -> Result<Vec<Op>, IronicError> {
        let node = SeenNode::of_json(machine, None);
        let mut object = node_object(&node);
        for (field, value) in changes {
            object[*field] = value.clone();
        }
        let draft = NodeDraft::parse(&object, &DraftBase::of(&node), Timestamp::ZERO).unwrap();
        let caller = TenureCaller {
            project: project.map(|project| project.parse().unwrap()),
            now: Timestamp::from_ms(1),
            lease: Uuid::nil().into(),
        };
        tenure_commands(&node, &draft, caller)
    }

    fn names(commands: &[Op]) -> Vec<&'static str> {
        commands.iter().map(Op::name).collect()
    }

    #[test]
    fn owners_and_lessees_become_commands() {
        let owned = json!({"tenure": {"owner": ONE}});
        let leased = json!({"tenure": {"owner": ONE, "lessee": TWO}});
        for (machine, changes, expected) in [
            (owned.clone(), vec![], vec![]),
            (owned.clone(), vec![("owner", json!(ONE))], vec![]),
            (
                json!({}),
                vec![("owner", json!(ONE)), ("lessee", json!(TWO))],
                vec!["SetMachineOwner", "GrantLease"],
            ),
            (
                owned.clone(),
                vec![("lessee", json!(TWO))],
                vec!["GrantLease"],
            ),
            (owned, vec![("owner", Value::Null)], vec!["SetMachineOwner"]),
            (leased.clone(), vec![("lessee", json!(TWO))], vec![]),
            (
                leased.clone(),
                vec![("lessee", Value::Null)],
                vec!["EndLease"],
            ),
            (
                leased.clone(),
                vec![("lessee", json!(THREE))],
                vec!["EndLease", "GrantLease"],
            ),
            (
                leased,
                vec![("lessee", json!("")), ("owner", json!(THREE))],
                vec!["EndLease", "SetMachineOwner"],
            ),
            (
                json!({}),
                vec![("resource_class", json!("rc1"))],
                vec!["SetMachineCapability"],
            ),
        ] {
            let found = commands(machine, &changes, None).unwrap();
            assert_eq!(names(&found), expected, "{changes:?}");
        }
    }

    #[test]
    fn a_lease_is_the_owners() {
        let owned = json!({"tenure": {"owner": ONE}});
        let changes = [("lessee", json!(TWO))];
        for (caller, project) in [(None, ONE), (Some(ONE), ONE), (Some(THREE), THREE)] {
            let found = commands(owned.clone(), &changes, caller).unwrap();
            let [Op::GrantLease(lease)] = found.as_slice() else {
                panic!("{found:?}");
            };
            assert_eq!(lease.project.to_string(), project);
            assert_eq!(lease.lessee.to_string(), TWO);
            assert_eq!(
                lease.expires_at,
                Timestamp::from_ms(1).plus_ms(LEASE_MS_MAX)
            );
        }
        let unowned = commands(json!({}), &changes, None).unwrap_err();
        assert_eq!(unowned.status, http::StatusCode::CONFLICT);
        assert!(unowned.text.contains("set the owner first"), "{unowned:?}");
    }

    #[test]
    fn a_lease_ends_by_its_parties() {
        let leased = json!({"tenure": {"owner": ONE, "lessee": TWO}});
        let changes = [("lessee", Value::Null)];
        let one: ProjectId = ONE.parse().unwrap();
        for (caller, by) in [
            (None, LeaseEnder::Administrator),
            (Some(ONE), LeaseEnder::Project(one)),
        ] {
            let found = commands(leased.clone(), &changes, caller).unwrap();
            let [Op::EndLease(end)] = found.as_slice() else {
                panic!("{found:?}");
            };
            assert_eq!(end.by, by);
        }
    }
}
