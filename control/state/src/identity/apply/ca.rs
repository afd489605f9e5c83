//! Rotation of the certificate authority: one generation replaces the other, with an overlap in
//! which both are trusted.

use std::collections::BTreeSet;

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;

use crate::identity::apply::certificate::revoke;
use crate::identity::command::{BeginCaRotation, ForceCaRotation, PutCa, PutSigningKey};
use crate::identity::entity::{CaPhase, CaRecord, CaRotation, Certificate, Identity, SigningKey};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};

/// Number of authorities in a generation: root, agents, nodes, peers. A rotation with another number
/// is refused.
const AUTHORITIES: usize = 4;
/// Shortest time between the switch of the peers to the new generation and the end of the old one,
/// milliseconds: peers need it to renew their certificates.
const HURRY_MS: u64 = 20_000;

fn known(tx: &Tx<'_>) -> Option<CaRotation> {
    let found = tx.get::<CaRotation>(&CaRotation::ONE.to_owned());
    found.map(|rotation| CaRotation::clone(rotation))
}

/// `true` if a rotation is in progress, so that ticks may advance it.
pub(crate) fn is_rotating(tables: &Tables) -> bool {
    let found = tables.get::<CaRotation>(&CaRotation::ONE.to_owned());
    found.is_some_and(|rotation| rotation.phase != CaPhase::Done)
}

fn check_until(until: Timestamp, now: Timestamp) -> CheckResult {
    let overlap = until.since_ms(now);
    if (CaRotation::OVERLAP_MIN_MS..=CaRotation::OVERLAP_MAX_MS).contains(&overlap) {
        return Ok(());
    }
    Err(Error::invalid(
        "overlap",
        "must be between a minute and ninety days",
    ))
}

pub(crate) fn begin_rotation(tx: &mut Tx<'_>, op: &BeginCaRotation) -> ApplyResult {
    check_until(op.until, tx.now)?;
    let from = match known(tx) {
        Some(rotation) if rotation.phase != CaPhase::Done => {
            let code = ErrorCode::CaRotationOpen;
            return Err(Error::new(code, code.title()));
        }
        Some(rotation) => rotation.to,
        None => 1,
    };
    let to = from.saturating_add(1);
    let ids: BTreeSet<&str> = op
        .authorities
        .iter()
        .map(|record| record.id.as_str())
        .collect();
    let is_new =
        |record: &CaRecord| record.generation == to && tx.get::<CaRecord>(&record.id).is_none();
    if ids.len() != AUTHORITIES || !op.authorities.iter().all(is_new) {
        let rule = format!("must be the {AUTHORITIES} of generation {to}");
        return Err(Error::invalid("authorities", rule));
    }
    let old: Vec<CaRecord> = tx
        .tables()
        .all::<CaRecord>()
        .map(|record| CaRecord::clone(record))
        .collect();
    // Retired, not deleted: agents hold certificates of the old generation until they renew.
    for record in old {
        tx.save(CaRecord {
            retired: true,
            ..record
        });
    }
    for record in &op.authorities {
        tx.save(record.clone());
    }
    Ok(Reply::CaRotation(tx.save(CaRotation {
        name: CaRotation::ONE.to_owned(),
        from,
        to,
        began_at: tx.now,
        until: op.until,
        is_forced: op.is_forced,
        phase: CaPhase::Overlap,
        switched_at: None,
        done_at: None,
    })))
}

pub(crate) fn force_rotation(tx: &mut Tx<'_>, op: &ForceCaRotation) -> ApplyResult {
    check_until(op.until, tx.now)?;
    let open = known(tx).filter(|rotation| rotation.phase != CaPhase::Done);
    let mut rotation = open.ok_or_else(|| Error::not_found("ca-rotation", CaRotation::ONE))?;
    rotation.is_forced = true;
    rotation.until = rotation.until.min(op.until);
    Ok(Reply::CaRotation(tx.save(rotation)))
}

/// Refuses a certificate of a generation that was replaced since it signed.
pub(crate) fn check_in_force(tx: &Tx<'_>, certificate: &Certificate) -> CheckResult {
    let is_over = known(tx).is_some_and(|rotation| {
        rotation.phase == CaPhase::Done && certificate.authority < rotation.to
    });
    if is_over {
        let text = "the certificate authority was replaced meanwhile; ask again";
        return Err(Error::new(ErrorCode::Unavailable, text));
    }
    Ok(())
}

/// `true` if every identity with a valid certificate has one of this generation.
fn is_everybody_new(tx: &Tx<'_>, generation: u32) -> bool {
    let tables = tx.tables();
    let is_old = |certificate: &Certificate| {
        certificate.revoked_at.is_none()
            && tx.now < certificate.not_after
            && certificate.authority < generation
    };
    // An old certificate of an identity that has renewed does not keep the rotation waiting.
    let renewed = |certificate: &Certificate| {
        let identity = tables.get::<Identity>(&certificate.identity);
        identity.is_some_and(|identity| identity.authority >= generation)
    };
    !tables
        .all::<Certificate>()
        .any(|certificate| is_old(certificate) && !renewed(certificate))
}

/// Advances the rotation by one step at most. Each step is a log entry of its own: a node that
/// dropped the old generation before its peers showed the new one would lose them.
pub(crate) fn advance_rotation(tx: &mut Tx<'_>) {
    let Some(mut rotation) = known(tx) else {
        return;
    };
    let now = tx.now;
    match rotation.phase {
        CaPhase::Overlap => {
            let hurries = rotation.is_forced && is_everybody_new(tx, rotation.to);
            let due = if rotation.is_forced {
                rotation.until
            } else {
                rotation.switch_at()
            };
            if !hurries && now < due {
                return;
            }
            rotation.phase = CaPhase::Switched;
            rotation.switched_at = Some(now);
        }
        CaPhase::Switched => {
            let since = now.since_ms(rotation.switched_at.unwrap_or(now));
            let is_due = rotation.is_forced || now >= rotation.until;
            if since < HURRY_MS || !is_due {
                return;
            }
            drop_generations_before(tx, rotation.to);
            rotation.phase = CaPhase::Done;
            rotation.done_at = Some(now);
        }
        CaPhase::Done => return,
    }
    tx.save(rotation);
}

/// Deletes the authorities of older generations with their keys, and revokes their certificates. An
/// identity without a newer certificate has to join again.
fn drop_generations_before(tx: &mut Tx<'_>, generation: u32) {
    let records: Vec<String> = tx
        .tables()
        .all::<CaRecord>()
        .filter(|record| record.generation < generation)
        .map(|record| record.id.clone())
        .collect();
    for id in records {
        tx.delete::<CaRecord>(&id);
    }
    let serials: Vec<String> = tx
        .tables()
        .all::<Certificate>()
        .filter(|certificate| certificate.authority < generation)
        .map(|certificate| certificate.serial.clone())
        .collect();
    revoke(tx, serials, "its certificate authority was replaced");
}

pub(crate) fn put_ca(tx: &mut Tx<'_>, op: &PutCa) -> ApplyResult {
    tx.save::<CaRecord>(op.0.clone());
    Ok(Reply::None)
}

pub(crate) fn put_signing_key(tx: &mut Tx<'_>, op: &PutSigningKey) -> ApplyResult {
    tx.save::<SigningKey>(op.0.clone());
    Ok(Reply::None)
}
