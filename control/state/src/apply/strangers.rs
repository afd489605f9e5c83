//! Machines that nobody announced: how many a boot server or a BMC agent may make known.
//!
//! Any host in a provisioning segment can ask for a boot under any UUID and any MAC address. The
//! records themselves are counted, so that the bounds outlive a restart and another leader.

use proto_errors::{Error, ErrorCode};
use proto_types::{MacAddr, PartitionId};

use crate::catalog::entity::{Partition, UNKNOWN_MACHINES_MAX};
use crate::entities::Machine;
use crate::tables::{Tables, Tx};

/// Machines that may become known by one MAC address: a card, or its board, is replaced at times.
pub const MAC_MACHINES_MAX: usize = 3;
/// Machines that one BMC may stand for: boards are replaced.
const BMC_MACHINES_MAX: usize = 3;
/// A partition keeps the unknown machines of so many minutes at their full rate.
const STRANGER_MINUTES: usize = 4;
/// A partition with this rate does not count unknown machines.
const UNKNOWN_MAX: usize = UNKNOWN_MACHINES_MAX as usize;
/// The time that the rate counts, milliseconds.
const MINUTE_MS: u64 = 60_000;

/// Refuses an unknown machine for which there is no room.
///
/// # Errors
/// `TooManyUnknown`: the boot server does not tell the same boot again.
pub(crate) fn check_room(
    tx: &Tx<'_>,
    partition: &PartitionId,
    mac: Option<MacAddr>,
) -> Result<(), Error> {
    let index = tx.tables().index();
    let refuse = |message: String, hint: &str| {
        let error = Error::new(ErrorCode::TooManyUnknown, message).object("partition", partition);
        Err(error.hint(hint))
    };
    let at_mac = mac.and_then(|mac| index.first_macs.get(&(partition.clone(), mac)));
    if let (Some(mac), Some(at_mac)) = (mac, at_mac)
        && at_mac.len() >= MAC_MACHINES_MAX
    {
        return refuse(
            format!("{MAC_MACHINES_MAX} machines became known by MAC address {mac} already"),
            "delete those that are gone: metalmesh machine delete",
        );
    }
    let known = tx.tables().require::<Partition>(partition)?;
    let rate = known.unknown_machines_per_minute();
    if rate >= UNKNOWN_MAX {
        return Ok(());
    }
    let since = tx.now.ms().saturating_sub(MINUTE_MS);
    let arrivals = index.arrivals.get(partition).into_iter().flatten().rev();
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

/// `true` if a BMC may stand for one more machine of its partition.
pub(crate) fn has_bmc_room(tables: &Tables, partition: &PartitionId, address: &str) -> bool {
    let at = (partition.clone(), address.to_owned());
    let machines = tables.index().bmc_machines.get(&at);
    machines.is_none_or(|machines| *machines < BMC_MACHINES_MAX)
}

/// The unknown machines of a partition that never registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strangers {
    /// Where they asked for a boot.
    pub partition: PartitionId,
    /// How many they are.
    pub machines: usize,
    /// MAC addresses that stand for as many machines as one may; at most 8 are named.
    pub macs: Vec<MacAddr>,
    /// `true` if no other unknown machine becomes known at this moment.
    pub is_full: bool,
}

/// MAC addresses that are named.
const NAMED_MAX: usize = 8;

/// Partitions in which somebody makes up machines: one MAC address stands for as many as it may,
/// or there are more than a minute's worth that never registered.
pub fn strangers(tables: &Tables) -> Vec<Strangers> {
    let index = tables.index();
    let found = index.strangers.iter().filter_map(|(id, known)| {
        let rate = tables.get::<Partition>(id)?.unknown_machines_per_minute();
        let mut macs: Vec<MacAddr> = known
            .iter()
            .filter_map(|(_, machine)| tables.get::<Machine>(machine)?.first_mac)
            .filter(|mac| {
                let machines = index.first_macs.get(&(id.clone(), *mac));
                machines.is_some_and(|machines| machines.len() >= MAC_MACHINES_MAX)
            })
            .collect();
        macs.sort_unstable();
        macs.dedup();
        macs.truncate(NAMED_MAX);
        (!macs.is_empty() || known.len() >= rate).then(|| Strangers {
            partition: id.clone(),
            machines: known.len(),
            macs,
            is_full: known.len() >= rate.saturating_mul(STRANGER_MINUTES),
        })
    });
    found.collect()
}
