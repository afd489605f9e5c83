//! The networks and ports that a caller reaches.

use control_state::{Network, NetworkType, NodeDocument};
use http::StatusCode;

use crate::access::{FacadeCaller, KeystoneRole};
use crate::error::IronicError;

/// `true` if the caller sees a network: a project its own, and those that belong to no project. The
/// underlay is the operators' alone.
pub(super) fn reaches_network(caller: &FacadeCaller, network: &Network) -> bool {
    let Some(project) = caller.project() else {
        return true;
    };
    match network.project {
        Some(owner) => owner == project,
        None => network.kind != NetworkType::Underlay,
    }
}

/// `true` if the caller sees a port: a project its own.
pub(super) fn reaches_port(caller: &FacadeCaller, port: &NodeDocument) -> bool {
    match caller.project() {
        None => true,
        Some(project) => port.owner == Some(project),
    }
}

/// Refuses changes of callers that may only read.
///
/// # Errors
/// 403.
pub(super) fn require_member(caller: &FacadeCaller) -> Result<(), IronicError> {
    if caller.role >= KeystoneRole::Member {
        return Ok(());
    }
    let text = "ports are changed by members: the token's role in this scope is reader";
    Err(IronicError::new(StatusCode::FORBIDDEN, text))
}
