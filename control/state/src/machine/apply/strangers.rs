//! Bounds on unknown machines that boot servers and BMC agents may create.
//!
//! Any host in a provisioning segment can ask for a boot under any UUID and any MAC address, and
//! each makes a record. The records themselves are counted, so that the bounds outlive a restart
//! and a change of leader.

use proto_errors::{Error, ErrorCode};
use proto_types::{MacAddr, MachineId, PartitionId, Timestamp};

use crate::catalog::entity::{Partition, UNKNOWN_MACHINES_MAX};
use crate::cluster::read::restored;
use crate::machine::apply::machine;
use crate::machine::read::{MAC_MACHINES_MAX, STRANGER_MINUTES};
use crate::reply::CheckResult;
use crate::tables::{Tables, Tx};

/// Rate, machines per minute, at which a partition does not bound unknown machines.
const UNKNOWN_MAX: usize = UNKNOWN_MACHINES_MAX as usize;
/// Window of the rate, milliseconds.
const MINUTE_MS: u64 = 60_000;

/// Refuses an unknown machine beyond the bounds of its MAC address or partition.
///
/// # Errors
/// `TooManyUnknown`: the boot server does not report the same boot again.
pub(crate) fn check_room(
    tx: &Tx<'_>,
    partition: &PartitionId,
    mac: Option<MacAddr>,
) -> CheckResult {
    let index = tx.tables().index();
    let refuse = |message: String, hint: &str| {
        let error = Error::new(ErrorCode::TooManyUnknown, message).object("partition", partition);
        Err(error.hint(hint))
    };
    // By the MAC address: one card that invents UUIDs would use up the rate of its partition.
    let at_mac = mac.and_then(|mac| index.first_macs.get(&(partition.clone(), mac)));
    if let (Some(mac), Some(at_mac)) = (mac, at_mac)
        && at_mac.len() >= MAC_MACHINES_MAX
    {
        return refuse(
            format!("{MAC_MACHINES_MAX} machines became known by MAC address {mac} already"),
            "delete those that are gone: `metalmesh machine free MACHINE -A`",
        );
    }
    let known = tx.tables().require::<Partition>(partition)?;
    let rate = known.unknown_machines_per_minute();
    if rate >= UNKNOWN_MAX {
        return Ok(());
    }
    let since = tx.now.ms().saturating_sub(MINUTE_MS);
    let arrivals = index.arrivals.get(partition).into_iter().flatten().rev();
    // Newest first and at most `rate` of them: the check costs no more in a full partition.
    let recent = arrivals.take_while(|(at, _)| at.ms() > since).take(rate);
    if recent.count() >= rate {
        let message =
            format!("{rate} machines became known in partition \"{partition}\" within a minute");
        return refuse(message, "try again in a minute");
    }
    let max = rate.saturating_mul(STRANGER_MINUTES);
    if index
        .strangers
        .get(partition)
        .map_or(0, |known| known.len())
        >= max
    {
        return refuse(
            format!("partition \"{partition}\" has {max} machines that never registered"),
            "they are forgotten an hour after they became known; see them: metalmesh machine ls",
        );
    }
    Ok(())
}

/// Life of a machine that was only seen, milliseconds; it is forgotten afterwards and becomes known
/// again with its next boot.
const STRANGER_LIFE_MS: u64 = 3_600_000;

/// Machines that did not register within [`STRANGER_LIFE_MS`]. Nothing is forgotten while a
/// restored state waits for its operator.
pub(crate) fn old_strangers(tables: &Tables, now: Timestamp) -> impl Iterator<Item = MachineId> {
    let all = tables.index().strangers.values();
    let is_held = restored(tables).is_some();
    let old =
        move |known: &&(Timestamp, MachineId)| !is_held && now >= known.0.plus_ms(STRANGER_LIFE_MS);
    all.flat_map(move |known| known.iter().take_while(old))
        .map(|(_, id)| *id)
}

/// Deletes them.
pub(crate) fn forget_strangers(tx: &mut Tx<'_>) {
    let old: Vec<_> = old_strangers(tx.tables(), tx.now).collect();
    for id in old {
        machine::forget(tx, id);
    }
}
