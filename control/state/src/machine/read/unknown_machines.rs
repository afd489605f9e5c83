//! Machines that nobody announced: where there are too many of them.

use proto_types::{MacAddr, PartitionId};

use crate::catalog::entity::Partition;
use crate::machine::entity::Machine;
use crate::tables::Tables;

/// Machines that may become known by one MAC address: a card, or its board, is replaced at times.
pub const MAC_MACHINES_MAX: usize = 3;
/// Machines that one BMC may stand for: boards are replaced.
const BMC_MACHINES_MAX: usize = 3;
/// A partition keeps the unknown machines of so many minutes at their full rate.
pub(crate) const STRANGER_MINUTES: usize = 4;

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
