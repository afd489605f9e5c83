//! Objects that a changed node refers to.

use control_state::{DocumentKind, NodeDocument, Project, Tables};
use proto_types::{MachineId, ProjectId};
use uuid::Uuid;

use super::node_draft::NodeDraft;
use crate::access::seen_node;
use crate::error::IronicError;
use crate::request::IronicCall;

/// Finds the objects that a draft refers to, and puts the id of its parent into it. `owner` is the
/// project that owns the node; `None` means the site.
///
/// # Errors
/// 400 for an object that does not exist, or that the caller may not refer to.
pub(super) fn resolve_links(
    call: &IronicCall<'_>,
    tables: &Tables,
    draft: &mut NodeDraft,
    owner: Option<ProjectId>,
) -> Result<(), IronicError> {
    let before = draft.content.parent;
    let is_same = |ident: &String| before.is_some_and(|before| *ident == before.to_string());
    draft.content.parent = match &draft.parent {
        None => None,
        Some(ident) if is_same(ident) => before,
        Some(ident) => Some(parent(call, tables, ident, owner)?),
    };
    if let Some(chassis) = draft.content.chassis {
        check_chassis(tables, chassis)?;
    }
    for (field, project) in [("owner", draft.owner), ("lessee", draft.lessee)] {
        let Some(project) = project else { continue };
        if tables.get::<Project>(&project).is_none() {
            let text = format!("{field}: there is no project {project}");
            return Err(IronicError::invalid(text));
        }
    }
    Ok(())
}

/// The node that another one becomes a part of. It has to be of the same owner, and the caller has to
/// see it; every other one is refused in the same words.
fn parent(
    call: &IronicCall<'_>,
    tables: &Tables,
    ident: &str,
    owner: Option<ProjectId>,
) -> Result<MachineId, IronicError> {
    let found = seen_node(tables, call.policy, call.caller, ident).ok();
    let found = found.filter(|node| node.owner() == owner);
    found.map(|node| node.id()).ok_or_else(|| {
        IronicError::invalid(format!(
            "Unable to apply the requested parent_node '{ident}'. Requested value was invalid."
        ))
    })
}

fn check_chassis(tables: &Tables, chassis: Uuid) -> Result<(), IronicError> {
    let found = tables.get::<NodeDocument>(&chassis);
    if found.is_some_and(|document| document.kind == DocumentKind::Chassis) {
        return Ok(());
    }
    let text = format!("Chassis {chassis} could not be found.");
    Err(IronicError::invalid(text))
}
