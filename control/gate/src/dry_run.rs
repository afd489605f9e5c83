//! The methods that cannot run as a dry run.

use control_state::ErrorCode;
use proto_public::Method;
use tonic::Status;

use crate::refusal::refused;

/// Services with effects outside the replicated state: another program, the cluster membership, a
/// file. Taking a write back does not undo those, so a dry run of them is refused.
const BEYOND_THE_STATE: [&str; 3] = [
    "metalstack.admin.v2.VPNService",
    "metalmesh.admin.v1.ClusterService",
    "metalmesh.admin.v1.BackupService",
];

/// Methods of these services that implement the dry run themselves.
const DRY_RUN_METHODS: [&str; 2] = [
    "/metalmesh.admin.v1.ClusterService/Remove",
    "/metalmesh.admin.v1.ClusterService/ReconcileAfterRestore",
];

/// Refuses the dry run of a method that it cannot take back.
///
/// # Errors
/// `CannotBeTried` for a stream, or for a method with effects outside the replicated state.
pub(crate) fn can_be_tried(method: &Method) -> Result<(), Status> {
    let is_known = DRY_RUN_METHODS.contains(&method.path.as_str());
    let beyond = !is_known && BEYOND_THE_STATE.contains(&method.service.as_str());
    if beyond || method.server_streaming || method.client_streaming {
        let what = format!("{} does more than one change of the state", method.path);
        return Err(refused(ErrorCode::CannotBeTried, what));
    }
    Ok(())
}
