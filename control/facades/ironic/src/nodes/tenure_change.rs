//! The parts of a change that follow from another owner, lessee or resource class of a node.

use control_state::{
    ClassChange, EndLease, GrantLease, LEASE_MS_MAX, LeaseEnder, SetMachineCapability,
    SetMachineOwner, UpdateNode,
};
use http::StatusCode;
use proto_types::{LeaseId, ProjectId, Timestamp};

use super::node_draft::NodeDraft;
use crate::access::SeenNode;
use crate::error::IronicError;
use crate::patch::JsonPatch;

/// The rule for another owner.
const OWNER: &str = "baremetal:node:update:owner";
/// The fields of a node's instance.
const INSTANCE_FIELDS: [&str; 5] = [
    "instance_info",
    "instance_name",
    "instance_uuid",
    "protected",
    "protected_reason",
];
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
    /// `true` if it is an administrator who names the owner.
    pub(super) confirms: bool,
}

/// The parts of a change that follow from another owner, lessee or class.
///
/// # Errors
/// 409 if the lessee cannot change as long as somebody uses the node, or nobody owns it; 403 for a
/// project that gives the node another owner.
pub(super) fn tenure_parts(
    node: &SeenNode,
    draft: &NodeDraft,
    caller: TenureCaller,
) -> Result<UpdateNode, IronicError> {
    let machine = node.id();
    let mut change = UpdateNode::of(machine);
    let is_other_lessee = draft.lessee != node.lessee();
    // The owner does not change under a lease, so that a lease ends before.
    if is_other_lessee && node.lessee().is_some() {
        change.end = Some(end_lease(node, caller)?);
    }
    let is_other_owner = draft.owner != node.owner();
    if is_other_owner && caller.project.is_some() {
        return Err(IronicError::forbidden(OWNER));
    }
    // An administrator who names the owner of a node that a project enrolled confirms it.
    if is_other_owner || (caller.confirms && node.machine.unconfirmed) {
        let owner = draft.owner;
        change.owner = Some(SetMachineOwner { machine, owner });
    }
    if let Some(lessee) = draft.lessee.filter(|_| is_other_lessee) {
        change.grant = Some(grant_lease(node, lessee, draft.owner, caller)?);
    }
    let class = &node.machine.capability.resource_class;
    if draft.resource_class != *class {
        change.capability = Some(SetMachineCapability {
            machine,
            project: caller.project,
            resource_class: match &draft.resource_class {
                Some(class) => ClassChange::Set(class.clone()),
                None => ClassChange::Clear,
            },
            traits: None,
        });
    }
    Ok(change)
}

/// Refuses a patch of the instance by the owner of a leased node, before anything of the instance is
/// compared with the patch: it is the lessee's, and so is whether a guess about it is right.
///
/// # Errors
/// 403, which names the field.
pub(super) fn check_instance(
    node: &SeenNode,
    caller: Option<ProjectId>,
    patch: &JsonPatch,
) -> Result<(), IronicError> {
    let is_owner = caller.is_some() && caller == node.owner();
    if !is_owner || node.machine.tenure.lessee.is_none() {
        return Ok(());
    }
    let mut roots = patch.roots().into_iter();
    let Some(field) = roots.find(|root| INSTANCE_FIELDS.contains(root)) else {
        return Ok(());
    };
    let id = node.id();
    let text = format!(
        "{field}: node {id} is leased, and its lessee alone changes the instance: end the lease first: \
         baremetal node unset {id} --lessee"
    );
    Err(IronicError::new(StatusCode::FORBIDDEN, text))
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

    fn parts(
        machine: Value,
        changes: &[(&str, Value)],
        project: Option<&str>,
    ) -> Result<UpdateNode, IronicError> {
        let node = SeenNode::of_json(machine, None);
        let mut object = node_object(&node, true);
        for (field, value) in changes {
            object[*field] = value.clone();
        }
        let draft = NodeDraft::parse(&object, &DraftBase::of(&node), Timestamp::ZERO).unwrap();
        let caller = TenureCaller {
            project: project.map(|project| project.parse().unwrap()),
            now: Timestamp::from_ms(1),
            lease: Uuid::nil().into(),
            confirms: project.is_none() && changes.iter().any(|(field, _)| *field == "owner"),
        };
        tenure_parts(&node, &draft, caller)
    }

    /// The parts that a change has, by their fields.
    fn names(change: &UpdateNode) -> Vec<&'static str> {
        let parts = [
            ("end", change.end.is_some()),
            ("owner", change.owner.is_some()),
            ("grant", change.grant.is_some()),
            ("capability", change.capability.is_some()),
            ("node", change.node.is_some()),
        ];
        let present = parts.into_iter().filter(|(_, is_there)| *is_there);
        present.map(|(name, _)| name).collect()
    }

    #[test]
    fn owners_and_lessees_become_parts() {
        let owned = json!({"tenure": {"owner": ONE}});
        let claimed = json!({"tenure": {"owner": ONE}, "unconfirmed": true});
        let leased = json!({"tenure": {"owner": ONE, "lessee": TWO}});
        for (machine, changes, expected) in [
            (owned.clone(), vec![], vec![]),
            (owned.clone(), vec![("owner", json!(ONE))], vec![]),
            (claimed.clone(), vec![("extra", json!({}))], vec![]),
            (claimed, vec![("owner", json!(ONE))], vec!["owner"]),
            (
                json!({}),
                vec![("owner", json!(ONE)), ("lessee", json!(TWO))],
                vec!["owner", "grant"],
            ),
            (owned.clone(), vec![("lessee", json!(TWO))], vec!["grant"]),
            (owned, vec![("owner", Value::Null)], vec!["owner"]),
            (leased.clone(), vec![("lessee", json!(TWO))], vec![]),
            (leased.clone(), vec![("lessee", Value::Null)], vec!["end"]),
            (
                leased.clone(),
                vec![("lessee", json!(THREE))],
                vec!["end", "grant"],
            ),
            (
                leased,
                vec![("lessee", json!("")), ("owner", json!(THREE))],
                vec!["end", "owner"],
            ),
            (
                json!({}),
                vec![("resource_class", json!("rc1"))],
                vec!["capability"],
            ),
        ] {
            let found = parts(machine, &changes, None).unwrap();
            assert_eq!(names(&found), expected, "{changes:?}");
        }
    }

    #[test]
    fn owners_are_the_sites_word() {
        for (machine, owner) in [
            (json!({"tenure": {"owner": ONE}}), json!(TWO)),
            (json!({"tenure": {"owner": ONE}}), Value::Null),
            (json!({}), json!(ONE)),
        ] {
            let refused = parts(machine, &[("owner", owner)], Some(ONE)).unwrap_err();
            assert_eq!(refused.status, http::StatusCode::FORBIDDEN);
        }
    }

    #[test]
    fn a_lease_is_the_owners() {
        let owned = json!({"tenure": {"owner": ONE}});
        let changes = [("lessee", json!(TWO))];
        for (caller, project) in [(None, ONE), (Some(ONE), ONE), (Some(THREE), THREE)] {
            let found = parts(owned.clone(), &changes, caller).unwrap();
            let lease = found.grant.unwrap();
            assert_eq!(lease.project.to_string(), project);
            assert_eq!(lease.lessee.to_string(), TWO);
            assert_eq!(
                lease.expires_at,
                Timestamp::from_ms(1).plus_ms(LEASE_MS_MAX)
            );
        }
        let unowned = parts(json!({}), &changes, None).unwrap_err();
        assert_eq!(unowned.status, http::StatusCode::CONFLICT);
        assert!(unowned.text.contains("set the owner first"), "{unowned:?}");
    }

    #[test]
    fn an_instance_is_the_lessees() {
        let owned = json!({"tenure": {"owner": ONE}});
        let leased = json!({"tenure": {"owner": ONE, "lessee": TWO}});
        let guess = json!([{"op": "test", "path": "/instance_info/configdrive", "value": "x"}]);
        let named = json!([{"op": "add", "path": "/name", "value": "kn1"}]);
        for (machine, caller, patch, expected) in [
            (&owned, Some(ONE), &guess, true),
            (&leased, Some(ONE), &guess, false),
            (&leased, Some(ONE), &named, true),
            (&leased, Some(TWO), &guess, true),
            (&leased, None, &guess, true),
        ] {
            let node = SeenNode::of_json(machine.clone(), None);
            let caller = caller.map(|project| project.parse().unwrap());
            let patch = JsonPatch::parse(patch).unwrap();
            let checked = check_instance(&node, caller, &patch);
            assert_eq!(checked.is_ok(), expected, "{caller:?} {patch:?}");
        }
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
            let found = parts(leased.clone(), &changes, caller).unwrap();
            assert_eq!(found.end.unwrap().by, by);
        }
    }
}
