//! Watches of claims: the messages of general watches, with the claims in them decoded.

use control_gate::refusal::refused;
use control_state::ErrorCode;
use prost::Message as _;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::tenant::v1 as tenant;
use tonic::Status;

/// The message of a watch of claims that a message of a general watch stands for.
pub(super) fn claim_event(
    event: mesh::WatchEvent,
) -> Result<tenant::ClaimServiceWatchResponse, Status> {
    let changes = event.changes.into_iter().map(claim_change);
    Ok(tenant::ClaimServiceWatchResponse {
        revision: event.revision,
        changes: changes.collect::<Result<_, Status>>()?,
        listed: event.listed,
    })
}

fn claim_change(change: mesh::WatchChange) -> Result<tenant::ClaimChange, Status> {
    use mesh::WatchChangeType::{Changed, Created, Deleted, Present, Unspecified};
    let name = match change.r#type() {
        Present => "present",
        Created => "created",
        Changed | Unspecified => "changed",
        Deleted => "deleted",
    };
    let object = change.object.as_ref();
    let claim = object.map(|object| tenant::Claim::decode(object.value.as_slice()));
    let claim = claim.transpose().map_err(|error| {
        refused(
            ErrorCode::Internal,
            format!("a claim of a watch is unreadable: {error}"),
        )
    })?;
    Ok(tenant::ClaimChange {
        r#type: name.to_owned(),
        uuid: change.id,
        revision: change.revision,
        claim,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_general_message_becomes_one_of_claims() {
        let claim = tenant::Claim {
            uuid: "c".into(),
            name: "web-1".into(),
            ..Default::default()
        };
        let object = prost_types::Any {
            type_url: "type.googleapis.com/metalmesh.tenant.v1.Claim".into(),
            value: claim.encode_to_vec(),
        };
        let change = mesh::WatchChange {
            r#type: mesh::WatchChangeType::Created.into(),
            kind: "claim".into(),
            id: "c".into(),
            revision: 7,
            object: Some(object),
        };
        let event = mesh::WatchEvent {
            revision: 8,
            changes: vec![change.clone()],
            listed: true,
        };
        let told = claim_event(event).unwrap();
        assert!(told.listed && told.revision == 8);
        let [shown] = told.changes.as_slice() else {
            panic!("{told:?}")
        };
        assert_eq!((shown.r#type.as_str(), shown.revision), ("created", 7));
        assert_eq!(shown.claim, Some(claim));
        let unreadable = mesh::WatchChange {
            object: Some(prost_types::Any {
                value: vec![0xff],
                ..Default::default()
            }),
            ..change
        };
        assert!(claim_change(unreadable).is_err());
    }
}
