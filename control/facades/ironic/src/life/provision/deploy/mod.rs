//! Deployments: a node's fields, and what a request adds to them, become the one command that gives
//! the machine to a project and installs it.

mod config_drive;
mod deploy_image;
mod deploy_networks;
mod deploy_project;
mod instance;
mod refused_fields;

use control_state::{AllocateMachine, AllocationType, FirewallRules, Labels, Tables};
use http::StatusCode;
use proto_types::{AllocationId, ProjectId, Timestamp};
use uuid::Uuid;

use self::deploy_networks::wanted_networks;
use self::deploy_project::using_project;
use self::instance::InstanceWish;
use super::request::ProvisionRequest;
use crate::access::SeenNode;
use crate::error::IronicError;
use crate::life::refusals::unsupported_but;
use crate::request::IronicCall;

/// Installs a system on a node that is available.
///
/// # Errors
/// 400 for a wish that cannot be fulfilled, 409 for a machine that cannot be used now, 429 for a quota
/// that is used up.
pub(super) async fn deploy(
    call: &IronicCall<'_>,
    node: &SeenNode,
    request: &ProvisionRequest<'_>,
) -> Result<(), IronicError> {
    if !request.deploy_steps.is_empty() {
        let remedy = "Images and filesystem layouts decide what is done at an installation.";
        return Err(unsupported_but(node, "deploy steps", remedy));
    }
    let wish = InstanceWish::of(node, request.configdrive)?;
    let (caller, now) = (call.caller.project(), call.now());
    let found = call.read(|tables| deployment(tables, node, &wish, caller, now));
    let op = found.await?;
    call.propose(op).await.map(drop).map_err(of_request)
}

/// The command for a wish.
fn deployment(
    tables: &Tables,
    node: &SeenNode,
    wish: &InstanceWish,
    caller: Option<ProjectId>,
    now: Timestamp,
) -> Result<AllocateMachine, IronicError> {
    let project = using_project(tables, node, wish.project, caller)?;
    let id = Uuid::now_v7();
    Ok(AllocateMachine {
        id: AllocationId::new(id),
        project,
        machine: Some(node.id()),
        name: wish.name.clone(),
        description: String::new(),
        hostname: wish.hostname.clone(),
        partition: None,
        size: None,
        image: wish.image.find(tables, now)?,
        layout: None,
        ssh_public_keys: wish.drive.ssh_public_keys.clone(),
        userdata: wish.drive.userdata.clone(),
        labels: Labels::new(),
        networks: wanted_networks(tables, node, project)?,
        placement_labels: Labels::new(),
        dns_servers: Vec::new(),
        ntp_servers: Vec::new(),
        kind: AllocationType::Machine,
        firewall_rules: FirewallRules::default(),
        vpn: None,
        // The lower half of a version 7 UUID is random.
        seed: id.as_u64_pair().1,
        idempotency: None,
    })
}

/// A refusal of the state as one of the request: an image, network or project that the node names and
/// that does not exist is no unknown node.
fn of_request(error: IronicError) -> IronicError {
    match error.status {
        StatusCode::NOT_FOUND => IronicError::invalid(error.text),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_objects_are_errors_of_the_request() {
        for (status, expected) in [
            (StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST),
            (StatusCode::CONFLICT, StatusCode::CONFLICT),
            (
                StatusCode::SERVICE_UNAVAILABLE,
                StatusCode::SERVICE_UNAVAILABLE,
            ),
        ] {
            let mapped = of_request(IronicError::new(status, "image \"x\" was not found"));
            assert_eq!(mapped.status, expected);
            assert_eq!(mapped.text, "image \"x\" was not found");
        }
    }
}
