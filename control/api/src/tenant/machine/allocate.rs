//! Converts a create request to the one command that allocates a machine with its networks,
//! addresses and orders.

use control_convert::catalog::{from_dns, from_ntp};
use control_convert::enums::from_allocation_type;
use control_convert::machine::from_firewall_rules;
use control_convert::ssh_key::from_keys;
use control_convert::{from_labels, parse, parse_all, parse_opt};
use control_gate::Caller;
use control_gate::refusal::{invalid, refused};
use control_state::{
    AllocateMachine, AllocationType, ErrorCode, FirewallRules, IdempotencyRequest, Machine,
    WantedNetwork,
};
use prost::Message;
use proto_public::api::v2::{MachineAllocationNetwork, MachineServiceCreateRequest};
use proto_types::{AllocationId, Digest};
use ring::digest::{SHA256, digest};
use tonic::{Request, Status};
use uuid::Uuid;

use crate::services::Services;

/// Metadata with the idempotency key of a create request.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Largest idempotency key, bytes. A longer one is refused.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;

/// The command for a request.
///
/// # Errors
/// `invalid_argument`.
pub(super) fn command(
    caller: &Caller,
    request: &Request<MachineServiceCreateRequest>,
) -> Result<AllocateMachine, Status> {
    let idempotency = idempotency(request)?;
    let request = request.get_ref().clone();
    let kind = from_allocation_type(request.allocation_type)
        .ok_or_else(|| invalid("allocation_type", "must be machine or firewall"))?;
    if kind == AllocationType::Machine && request.firewall_spec.is_some() {
        return Err(invalid("firewall_spec", "is for firewalls only"));
    }
    check_firewall_access(caller, kind, &request)?;
    let firewall_rules = request.firewall_spec.and_then(|spec| spec.firewall_rules);
    let id = Uuid::now_v7();
    Ok(AllocateMachine {
        id: AllocationId::new(id),
        project: parse("project", &request.project)?,
        machine: parse_opt("uuid", request.uuid.as_ref())?,
        name: request.name,
        description: request.description.unwrap_or_default(),
        hostname: request.hostname,
        partition: parse_opt("partition", request.partition.as_ref())?,
        size: parse_opt("size", request.size.as_ref())?,
        image: parse("image", &request.image)?,
        layout: parse_opt("filesystem_layout", request.filesystem_layout.as_ref())?,
        ssh_public_keys: from_keys(request.ssh_public_keys)?,
        userdata: request.userdata.unwrap_or_default(),
        labels: from_labels(request.labels),
        networks: request
            .networks
            .iter()
            .map(network)
            .collect::<Result<_, Status>>()?,
        placement_labels: from_labels(request.placement_labels),
        dns_servers: from_dns(&request.dns_servers)?,
        ntp_servers: from_ntp(&request.ntp_servers),
        kind,
        firewall_rules: firewall_rules
            .map_or_else(|| Ok(FirewallRules::default()), from_firewall_rules)?,
        vpn: None,
        // The lower half of a version 7 UUID is random.
        seed: id.as_u64_pair().1,
        idempotency,
    })
}

impl Services {
    /// Refuses a machine by id that the project neither owns nor leases: it gets machines of the site by
    /// partition and size. One that does not exist is refused alike.
    ///
    /// # Errors
    /// `permission_denied`, unless the caller is an admin editor.
    pub(super) async fn check_named_machine(
        &self,
        caller: &Caller,
        op: &AllocateMachine,
    ) -> Result<(), Status> {
        let Some(id) = op.machine.filter(|_| !caller.is_admin_editor()) else {
            return Ok(());
        };
        let is_own = self.gate.read(caller, |tables| {
            let machine = tables.get::<Machine>(&id);
            Ok(machine.is_some_and(|machine| machine.tenure.relation(op.project).is_some()))
        });
        if is_own.await? {
            return Ok(());
        }
        let message = "only an admin editor may name a machine that the project neither owns nor \
                       leases; give partition and size";
        Err(refused(ErrorCode::PermissionDenied, message))
    }
}

/// Refuses keys and user data of a project for a firewall: it has access to the underlay, which no
/// tenant may get into. Control makes a firewall's user data itself.
///
/// # Errors
/// `permission_denied`, unless the caller is an admin editor.
fn check_firewall_access(
    caller: &Caller,
    kind: AllocationType,
    request: &MachineServiceCreateRequest,
) -> Result<(), Status> {
    if kind != AllocationType::Firewall || caller.is_admin_editor() {
        return Ok(());
    }
    // Published clients send the field without a text.
    let has_userdata = request
        .userdata
        .as_ref()
        .is_some_and(|data| !data.is_empty());
    let field = match (request.ssh_public_keys.is_empty(), has_userdata) {
        (true, false) => return Ok(()),
        (false, _) => "ssh_public_keys",
        (true, true) => "userdata",
    };
    Err(firewall_access_refused(field))
}

/// The refusal of keys and user data for a firewall.
pub(super) fn firewall_access_refused(field: &str) -> Status {
    let message = format!(
        "{field}: only an admin editor may give a firewall SSH keys or user data, because it has \
         access to the underlay; leave the field out, and change the firewall by its rules \
         (metalmesh firewall rules apply)"
    );
    refused(ErrorCode::PermissionDenied, message)
}

fn network(network: &MachineAllocationNetwork) -> Result<WantedNetwork, Status> {
    Ok(WantedNetwork {
        network: parse("networks.network", &network.network)?,
        ips: parse_all("networks.ips", &network.ips)?,
    })
}

/// The client's idempotency key and the digest of the request that it stands for.
///
/// # Errors
/// `invalid_argument` for an empty key, or one that is too long.
fn idempotency(
    request: &Request<MachineServiceCreateRequest>,
) -> Result<Option<IdempotencyRequest>, Status> {
    let Some(value) = request.metadata().get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let key = value.to_str().unwrap_or_default();
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX {
        let rule = format!("must have 1 to {IDEMPOTENCY_KEY_BYTES_MAX} printable characters");
        return Err(invalid(IDEMPOTENCY_KEY, rule));
    }
    let sha256 = digest(&SHA256, &canonical(request.get_ref()));
    let bytes: [u8; 32] = (sha256.as_ref().try_into())
        .map_err(|_| refused(ErrorCode::Internal, "the request could not be hashed"))?;
    Ok(Some(IdempotencyRequest {
        key: key.to_owned(),
        request: Digest::sha256(bytes),
    }))
}

/// The request's bytes with sorted labels: the order of a map's entries differs between two
/// encodings of the same request, and so would the digest.
fn canonical(request: &MachineServiceCreateRequest) -> Vec<u8> {
    let mut request = request.clone();
    let mut sorted = Vec::new();
    for labels in [request.labels.take(), request.placement_labels.take()] {
        let mut pairs: Vec<_> = labels.unwrap_or_default().labels.into_iter().collect();
        pairs.sort();
        sorted.push(pairs);
    }
    let mut bytes = request.encode_to_vec();
    bytes.extend_from_slice(format!("{sorted:?}").as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proto_public::api::v2::Labels;

    use super::*;

    fn with_labels(pairs: &[(&str, &str)]) -> MachineServiceCreateRequest {
        let labels = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        MachineServiceCreateRequest {
            name: "m".into(),
            labels: Some(Labels { labels }),
            ..Default::default()
        }
    }

    #[test]
    fn the_order_of_labels_does_not_count() {
        let many: Vec<(String, String)> =
            (0..50).map(|n| (n.to_string(), "x".to_owned())).collect();
        let there: Vec<_> = many.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let back: Vec<_> = there.iter().rev().copied().collect();
        assert_eq!(
            canonical(&with_labels(&there)),
            canonical(&with_labels(&back))
        );
        assert_ne!(
            canonical(&with_labels(&there)),
            canonical(&with_labels(&back[1..]))
        );
    }

    #[test]
    fn keys_have_a_limit() {
        let mut request = Request::new(with_labels(&[]));
        assert!(idempotency(&request).unwrap().is_none());
        let long = "k".repeat(IDEMPOTENCY_KEY_BYTES_MAX + 1);
        request
            .metadata_mut()
            .insert(IDEMPOTENCY_KEY, long.parse().unwrap());
        assert!(idempotency(&request).is_err());
        request
            .metadata_mut()
            .insert(IDEMPOTENCY_KEY, "key-1".parse().unwrap());
        assert_eq!(idempotency(&request).unwrap().unwrap().key, "key-1");
    }
}
