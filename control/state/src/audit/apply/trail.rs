//! The audit trail: records in order, each hashed over all before it.
//!
//! The chain starts at an anchor, with the first record. See `retention` for which records are
//! kept.

use proto_errors::Error;
use proto_types::{AuditHash, AuditPhase, Timestamp};

use crate::audit::apply::retention::retain;
use crate::audit::command::{AppendAudit, ForgetAuditExport, MarkAuditExport};
use crate::audit::entity::{AUDIT_EXPORTS_MAX, AuditAnchor, AuditEntry, AuditExport};
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

pub(crate) fn append(tx: &mut Tx<'_>, op: &AppendAudit) -> ApplyResult {
    for entry in &op.entries {
        record(tx, entry.clone());
    }
    retain(tx);
    Ok(Reply::None)
}

/// Records how far the trail was exported; an older mark is ignored. Beyond [`AUDIT_EXPORTS_MAX`]
/// a new destination replaces the one that has not advanced for longest.
pub(crate) fn mark_export(tx: &mut Tx<'_>, op: &MarkAuditExport) -> ApplyResult {
    let before = tx
        .get::<AuditExport>(&op.name)
        .map(|export| AuditExport::clone(export));
    if before
        .as_ref()
        .is_some_and(|mark| mark.sequence >= op.sequence)
    {
        return Ok(Reply::None);
    }
    if before.is_none() && tx.tables().table::<AuditExport>().len() >= AUDIT_EXPORTS_MAX {
        let all = tx.tables().all::<AuditExport>();
        let oldest = all
            .min_by_key(|export| export.at)
            .map(|export| export.name.clone());
        if let Some(oldest) = oldest {
            tx.delete::<AuditExport>(&oldest);
        }
    }
    tx.save(AuditExport {
        name: op.name.clone(),
        sequence: op.sequence,
        missed: op.missed.max(before.map_or(0, |mark| mark.missed)),
        at: tx.now,
    });
    Ok(Reply::None)
}

/// Forgets a former export destination, so that retention does not wait for it.
pub(crate) fn forget_export(tx: &mut Tx<'_>, op: &ForgetAuditExport) -> ApplyResult {
    let gone = tx.delete::<AuditExport>(&op.name);
    gone.ok_or_else(|| Error::not_found("audit-export", &op.name))?;
    retain(tx);
    Ok(Reply::None)
}

/// Records the call of an applied change.
pub(crate) fn of_change(tx: &mut Tx<'_>, call: &AuditEntry) {
    let ended: Timestamp = tx.now.max(call.time);
    record(
        tx,
        AuditEntry {
            ended: Some(ended),
            result_code: Some(0),
            phase: AuditPhase::Call,
            ..call.clone()
        },
    );
    retain(tx);
}

/// Appends a record to the chain.
pub(crate) fn record(tx: &mut Tx<'_>, mut entry: AuditEntry) {
    let before = tx.tables().all::<AuditEntry>().next_back();
    let (last, hash) = before.map_or((0, None), |entry| (entry.sequence, entry.hash));
    entry.sequence = tx.next_sequence();
    let previous = match hash {
        Some(hash) => hash,
        None => begin(tx, last),
    };
    entry.hash = Some(entry.line().hash(&previous));
    tx.save(entry);
}

/// Starts the chain behind the record `last` and returns the hash at which it starts.
fn begin(tx: &mut Tx<'_>, last: u64) -> AuditHash {
    let hash = AuditHash::anchor(last, tx.now);
    tx.save(AuditAnchor {
        name: AuditAnchor::TRAIL.to_owned(),
        hash,
        sequence: last,
        began: tx.now,
        dropped: 0,
    });
    hash
}
