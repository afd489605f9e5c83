//! Retention of the audit trail: by number, by age, and by share of each caller.
//!
//! When there are too many records, the callers that have the most lose their oldest ones, so that
//! nobody displaces the records of others. A record in the middle leaves its hash behind, in a gap
//! that takes in its neighbours, so that the chain goes on; gaps at the begin go into the anchor.
//! After each change of gaps one more record of the chain says which there are
//! ([`RETENTION_METHOD`]): a gap that no record speaks of was made by somebody else.

use proto_types::{AuditGaps, AuditPhase, RETENTION_METHOD, Timestamp};

use crate::audit::apply::trail;
use crate::audit::entity::{AUDIT_DROP, AuditAnchor, AuditEntry, AuditExport};
use crate::cluster::entity::AuditRetention;
use crate::cluster::read::settings;
use crate::tables::{Tables, Tx};

/// Most records that one command drops; the next commands drop the rest.
const DROPS_MAX: usize = 1024;
/// User of the records that retention appends.
const ACTOR: &str = "metalmesh";

/// Drops records beyond the bounds of number and age.
pub(crate) fn retain(tx: &mut Tx<'_>) {
    let goes = surplus(tx.tables(), tx.now);
    if !goes.is_empty() {
        drop_records(tx, goes);
    }
}

/// `true` if a tick has records to drop, by their age or because a setting was lowered.
pub(crate) fn is_due(tables: &Tables, now: Timestamp) -> bool {
    !surplus(tables, now).is_empty()
}

/// The records that go now, oldest first.
fn surplus(tables: &Tables, now: Timestamp) -> Vec<u64> {
    let keep = settings(tables).audit;
    let read = read_by_all(tables);
    let mut goes = of_age(tables, &keep, read, now);
    if goes.len() < DROPS_MAX {
        let kept = goes.len();
        goes.extend(of_shares(tables, keep.records_max, kept, read));
    }
    if goes.is_empty() {
        // A destination that stopped reading must not let the memory of control grow without bound.
        goes = of_shares(tables, keep.unread_max, 0, u64::MAX);
    }
    goes.sort_unstable();
    goes.dedup();
    goes.truncate(DROPS_MAX);
    goes
}

/// The last record that every place outside has read; all without any place.
fn read_by_all(tables: &Tables) -> u64 {
    let places = tables.all::<AuditExport>().map(|place| place.sequence);
    places.min().unwrap_or(u64::MAX)
}

fn of_age(tables: &Tables, keep: &AuditRetention, read: u64, now: Timestamp) -> Vec<u64> {
    let Some(age_ms) = keep.age_max_ms else {
        return Vec::new();
    };
    let all = tables.all::<AuditEntry>();
    let old = all.take_while(|record| {
        let is_old = now.since_ms(record.ended.unwrap_or(record.time)) > age_ms;
        record.sequence <= read && (is_old || record.phase == AuditPhase::Dropped)
    });
    let old = old.filter(|record| record.phase != AuditPhase::Dropped);
    old.map(|record| record.sequence).take(DROPS_MAX).collect()
}

/// Of those who have the most the oldest, when there are more than `max` and some slack; `gone`
/// go anyway.
fn of_shares(tables: &Tables, max: u32, gone: usize, read: u64) -> Vec<u64> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let slack = AUDIT_DROP;
    if tables.table::<AuditEntry>().len() <= max + slack + gone {
        return Vec::new();
    }
    let shares = &tables.index().audit_shares;
    let mut counts: Vec<usize> = shares.values().map(|share| share.len()).collect();
    let total = counts.iter().sum::<usize>().saturating_sub(gone);
    if total <= max + slack {
        return Vec::new();
    }
    let surplus = (total - max).min(DROPS_MAX);
    let level = level(&mut counts, surplus);
    let over = shares.values().filter(|share| share.len() > level);
    over.flat_map(|share| share.range(..=read).take(share.len() - level))
        .copied()
        .take(surplus)
        .collect()
}

/// How many records each caller may keep at most so that so many go.
fn level(counts: &mut [usize], surplus: usize) -> usize {
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let mut sum = 0;
    for (at, count) in counts.iter().enumerate() {
        sum += count;
        let callers = at + 1;
        let next = counts.get(callers).copied().unwrap_or(0);
        if sum - callers * next >= surplus {
            return (sum - surplus) / callers;
        }
    }
    0
}

fn drop_records(tx: &mut Tx<'_>, goes: Vec<u64>) {
    let anchor = tx.get::<AuditAnchor>(&AuditAnchor::TRAIL.to_owned());
    let anchor = anchor.map(|anchor| AuditAnchor::clone(anchor));
    // The gaps will be other ones, and a newer record will tell which.
    let before = tx.tables().index().audit_retention;
    for sequence in goes.into_iter().chain(before) {
        leave_gap(tx, sequence);
    }
    if let Some(anchor) = anchor {
        take_in(tx, anchor);
        tell_gaps(tx);
    }
}

/// Puts a gap into the place of a record, together with the gaps beside it.
fn leave_gap(tx: &mut Tx<'_>, sequence: u64) {
    let Some(gone) = tx.delete::<AuditEntry>(&sequence) else {
        return;
    };
    let Some(hash) = gone.hash else {
        // Every stored record has a hash; without one, no record is chained to it.
        return;
    };
    let table = tx.tables().table::<AuditEntry>();
    let is_gap = |record: &&AuditEntry| record.phase == AuditPhase::Dropped;
    let before = table.range(..sequence).next_back();
    let before = before.map(|(_, slot)| slot.value.as_ref()).filter(is_gap);
    let before = before.map(|gap| (gap.sequence, gap.count.unwrap_or(1)));
    let behind = table.range(sequence..).next();
    let behind = behind.map(|(_, slot)| slot.value.as_ref()).filter(is_gap);
    let behind = behind.cloned();
    let count = 1 + before.map_or(0, |(_, count)| count);
    if let Some((sequence, _)) = before {
        tx.delete::<AuditEntry>(&sequence);
    }
    tx.save(match behind {
        Some(gap) => AuditEntry {
            count: Some(gap.count.unwrap_or(1) + count),
            ..gap
        },
        None => AuditEntry::gap(sequence, gone.time, count, hash),
    });
}

/// Gaps at the begin belong to the anchor.
fn take_in(tx: &mut Tx<'_>, mut anchor: AuditAnchor) {
    let first = tx
        .tables()
        .all::<AuditEntry>()
        .find(|record| record.hash.is_some());
    let Some(gap) = first.filter(|record| record.phase == AuditPhase::Dropped) else {
        return;
    };
    let (sequence, count) = (gap.sequence, gap.count.unwrap_or(1));
    if let Some(hash) = gap.hash {
        anchor.hash = hash;
    }
    anchor.sequence = sequence;
    anchor.dropped += u64::from(count);
    tx.delete::<AuditEntry>(&sequence);
    tx.save(anchor);
}

/// Writes down which gaps there are, if there are any.
fn tell_gaps(tx: &mut Tx<'_>) {
    let index = tx.tables().index();
    let mut gaps = AuditGaps::default();
    for sequence in &index.audit_gaps {
        if let Some(gap) = tx.get::<AuditEntry>(sequence)
            && let Some(hash) = &gap.hash
        {
            gaps.add(*sequence, gap.count.unwrap_or(1), hash);
        }
    }
    if gaps.is_empty() {
        return;
    }
    let told = AuditEntry {
        ended: Some(tx.now),
        result_code: Some(0),
        body: Some(gaps.told()),
        ..AuditEntry::blank(tx.now, ACTOR, RETENTION_METHOD)
    };
    trail::record(tx, told);
}
