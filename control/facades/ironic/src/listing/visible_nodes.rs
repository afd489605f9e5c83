//! The nodes whose rows a list has for its caller.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_oslo::PolicyTarget;
use control_state::query::{project_machines, tenured_machines};
use control_state::{Machine, Tables};
use proto_types::{MachineId, ProjectId};

use crate::access::SeenNode;
use crate::error::IronicError;
use crate::request::IronicCall;

/// The nodes of the site, or of the caller's project, in the order of ids. `kind` is that of the list's
/// objects in the names of rules: `node`, `port` or `portgroup`.
///
/// # Errors
/// 403 if the policy permits neither list.
pub(crate) fn visible_nodes(
    call: &IronicCall<'_>,
    tables: &Tables,
    kind: &str,
) -> Result<Vec<SeenNode>, IronicError> {
    let Some(project) = list_scope(call, kind)? else {
        let all = tables.all::<Machine>();
        let seen = all.map(|machine| SeenNode::of(tables, machine));
        // Hosts of pools are the operators' alone, whoever may list everything.
        let is_shown =
            |node: &SeenNode| call.caller.is_system() || node.is_seen_by(call.policy, call.caller);
        return Ok(seen.filter(is_shown).collect());
    };
    let found = tenured_machines(tables, project).chain(project_machines(tables, project));
    let by_id: BTreeMap<MachineId, &Arc<Machine>> =
        found.map(|machine| (machine.id, machine)).collect();
    let seen = by_id
        .into_values()
        .map(|machine| SeenNode::of(tables, machine));
    let is_own =
        |node: &SeenNode| is_of(node, project) && node.is_seen_by(call.policy, call.caller);
    Ok(seen.filter(is_own).collect())
}

/// `true` if the project owns or uses the node.
pub(crate) fn is_of(node: &SeenNode, project: ProjectId) -> bool {
    node.owner() == Some(project) || node.lessee() == Some(project)
}

/// The project whose objects the caller may list. `None` means all.
///
/// # Errors
/// 403 if the policy permits neither.
pub(crate) fn list_scope(
    call: &IronicCall<'_>,
    kind: &str,
) -> Result<Option<ProjectId>, IronicError> {
    let all = format!("baremetal:{kind}:list_all");
    let nothing = PolicyTarget::none();
    if call.permits(&all, &nothing) {
        return Ok(None);
    }
    let project = call.caller.project();
    let project = project.ok_or_else(|| IronicError::forbidden(&all))?;
    call.require(&format!("baremetal:{kind}:list"), &nothing)?;
    Ok(Some(project))
}
