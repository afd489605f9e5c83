//! Revocation of certificates.

use std::collections::BTreeSet;

use proto_types::{AllocationId, MachineId};

use crate::identity::command::{CertificateChoice, RevokeCertificates};
use crate::identity::entity::{Certificate, Identity};
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

pub(crate) fn revoke_certificates(tx: &mut Tx<'_>, op: &RevokeCertificates) -> ApplyResult {
    let chosen: Vec<_> = match &op.choice {
        CertificateChoice::Serial(serial) => {
            tx.tables().require::<Certificate>(serial)?;
            vec![serial.clone()]
        }
        CertificateChoice::Identity(identity) => tx
            .tables()
            .all::<Certificate>()
            .filter(|certificate| certificate.identity == *identity)
            .map(|certificate| certificate.serial.clone())
            .collect(),
        CertificateChoice::Allocation(machine, allocation) => {
            return Ok(Reply::Serials(revoke_allocation(
                tx,
                *machine,
                *allocation,
                &op.reason,
            )));
        }
    };
    Ok(Reply::Serials(revoke(tx, chosen, &op.reason)))
}

/// Revokes every certificate of an allocation.
pub(crate) fn revoke_allocation(
    tx: &mut Tx<'_>,
    machine: MachineId,
    allocation: AllocationId,
    reason: &str,
) -> Vec<String> {
    let serials = tx
        .tables()
        .index()
        .machine_certificates
        .get(&machine)
        .into_iter()
        .flatten();
    let (chosen, identities): (Vec<_>, BTreeSet<_>) = serials
        .filter_map(|serial| tx.get::<Certificate>(serial))
        .filter(|certificate| certificate.allocation == Some(allocation))
        .map(|certificate| (certificate.serial.clone(), certificate.identity.clone()))
        .unzip();
    // The identity as well: a renewal in flight would otherwise issue a new certificate after the
    // revocation.
    for id in identities {
        if let Some(identity) = tx
            .get::<Identity>(&id)
            .filter(|identity| identity.revoked_at.is_none())
        {
            let revoked = Identity {
                revoked_at: Some(tx.now),
                revoked_reason: reason.to_owned(),
                ..Identity::clone(identity)
            };
            tx.save(revoked);
        }
    }
    revoke(tx, chosen, reason)
}

/// Revokes certificates, and returns those that were valid before. Time and reason of an earlier
/// revocation stay.
pub(crate) fn revoke(tx: &mut Tx<'_>, serials: Vec<String>, reason: &str) -> Vec<String> {
    let mut revoked = Vec::new();
    for serial in serials {
        let Some(certificate) = tx.get::<Certificate>(&serial) else {
            continue;
        };
        if certificate.revoked_at.is_some() {
            continue;
        }
        let mut certificate = Certificate::clone(certificate);
        certificate.revoked_at = Some(tx.now);
        certificate.revoked_reason = reason.to_owned();
        tx.save(certificate);
        revoked.push(serial);
    }
    revoked
}
