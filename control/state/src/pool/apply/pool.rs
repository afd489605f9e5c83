//! Pools.

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;
use uuid::Uuid;

use crate::fields::{check_description, in_use};
use crate::machine::entity::WipeLevel;
use crate::meta::{LabelsUpdate, Meta, check_generation};
use crate::pool::command::{DeletePool, SetPool};
use crate::pool::entity::{
    CompiledPolicies, HostPool, MetadataFilter, POOLS_MAX, PUBLISHED_MAX, PoolHost, REUSE_MAX_MS,
    RevokeRule,
};
use crate::pool::read::pool_hosts;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Longest grace before an eviction, milliseconds: 30 days. A longer one is refused.
const GRACE_MAX_MS: u64 = 30 * 24 * 3_600_000;
/// Longest key of a published label, bytes; a longer one is refused.
const KEY_BYTES_MAX: usize = 253;

/// Creates a pool, or replaces the settings of one.
pub(crate) fn set(tx: &mut Tx<'_>, op: &SetPool) -> ApplyResult {
    check(op)?;
    let generation = tx
        .get::<HostPool>(&op.id)
        .map_or(0, |pool| pool.meta.generation);
    check_generation("pool", op.id.as_str(), generation, op.expected)?;
    let Some(known) = tx.get::<HostPool>(&op.id).map(|pool| HostPool::clone(pool)) else {
        if tx.tables().table::<HostPool>().len() >= POOLS_MAX {
            let message = format!("the cluster has {POOLS_MAX} pools already");
            let hint = "delete pools that nobody needs: metalmesh pool rm POOL";
            return Err(Error::new(ErrorCode::TooMany, message).hint(hint));
        }
        let pool = filled(op, Meta::default(), None)?;
        return tx.create(pool).map(Reply::HostPool);
    };
    // All bound hosts are held against the policies anew, in pieces, by the tick. So are the metadata of
    // their claims.
    let first = MachineId::new(Uuid::nil());
    let is_same = known.policies == op.policies && known.metadata == op.metadata;
    let unchecked = match is_same {
        true => known.unchecked_from,
        false => Some(first),
    };
    let pool = filled(op, known.meta.clone(), unchecked)?;
    let pool = tx.update(pool);
    if (pool.floor, pool.reuse_floor) != (known.floor, known.reuse_floor) {
        verify_again(tx, &pool, known.floor);
    }
    Ok(Reply::HostPool(pool))
}

/// Has hosts that no claim has verified anew, after the pool asks for another wipe: all if it asks for
/// a stronger one between claims, and else those that were wiped by less.
fn verify_again(tx: &mut Tx<'_>, pool: &HostPool, known: WipeLevel) {
    let is_raised = pool.floor > known;
    let hosts: Vec<_> = pool_hosts(tx.tables(), &pool.id)
        .filter(|host| host.binding.is_none() && (is_raised || host.light_wipe.is_some()))
        .map(|host| PoolHost::clone(host))
        .collect();
    for mut host in hosts {
        host.clean_epoch = None;
        tx.save(host);
    }
}

fn filled(op: &SetPool, mut meta: Meta, unchecked: Option<MachineId>) -> Result<HostPool, Error> {
    LabelsUpdate::Replace(op.labels.clone()).apply(&mut meta.labels)?;
    Ok(HostPool {
        id: op.id.clone(),
        meta,
        description: op.description.clone(),
        policies: op.policies.clone(),
        published: op.published.clone(),
        floor: op.floor,
        reuse_max_ms: op.reuse_max_ms,
        reuse_floor: op.reuse_floor,
        metadata: op.metadata.clone(),
        on_revoke: op.on_revoke,
        unchecked_from: unchecked,
    })
}

fn check(op: &SetPool) -> CheckResult {
    check_description(&op.description)?;
    CompiledPolicies::check("policies", &op.policies)?;
    if op.published.len() > PUBLISHED_MAX {
        let rule = format!("must be at most {PUBLISHED_MAX}");
        return Err(Error::invalid("published", rule));
    }
    let is_key = |key: &String| {
        let stem = key.strip_suffix('*').unwrap_or(key);
        key.len() <= KEY_BYTES_MAX
            && !key.is_empty()
            && stem
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'*')
    };
    if !op.published.iter().all(is_key) {
        let rule = format!(
            "must be keys of labels of at most {KEY_BYTES_MAX} printable ASCII characters, with \
             \"*\" at the end only"
        );
        return Err(Error::invalid("published", rule));
    }
    if op.reuse_max_ms > REUSE_MAX_MS {
        return Err(Error::invalid("reuse_max", "must be at most 30 days"));
    }
    if op.floor < WipeLevel::Erase {
        let rule = "must be erase or sanitize: another project must not read what is left";
        return Err(Error::invalid("wipe_floor", rule));
    }
    if op.reuse_floor.is_some_and(|reuse| reuse > op.floor) {
        let rule = format!(
            "must be at most wipe_floor, {}: raise that one instead",
            op.floor.as_str()
        );
        return Err(Error::invalid("reuse_floor", rule));
    }
    MetadataFilter::check(&op.metadata)?;
    match op.on_revoke {
        RevokeRule::Evict { grace_ms } if grace_ms > GRACE_MAX_MS => {
            Err(Error::invalid("evict_after", "must be at most 30 days"))
        }
        _ => Ok(()),
    }
}

/// Deletes a pool without hosts.
pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeletePool) -> ApplyResult {
    let pool = tx.tables().require::<HostPool>(&op.id)?.clone();
    let hosts = tx.tables().index().hosts.pools.get(&op.id);
    if let Some(host) = hosts.and_then(|hosts| hosts.first()) {
        return Err(in_use("pool", op.id.as_str(), "host", &host.to_string()));
    }
    tx.delete::<HostPool>(&op.id);
    Ok(Reply::HostPool(pool))
}
