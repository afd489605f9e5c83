//! Bounds on unknown machines, and partitions that reach them.

use proto_types::{MacAddr, PartitionId};

use crate::catalog::entity::Partition;
use crate::machine::entity::Machine;
use crate::tables::Tables;

/// Most machines that become known by one MAC address; further ones are refused. More than one,
/// because NICs and boards are replaced.
pub const MAC_MACHINES_MAX: usize = 3;
/// Most machines that one BMC may report; further ones are ignored. More than one, because boards
/// are replaced.
const BMC_MACHINES_MAX: usize = 3;
/// Most unknown machines that a partition keeps, in minutes at its full rate; further ones are
/// refused.
pub(crate) const STRANGER_MINUTES: usize = 4;

/// Most machines of a partition that only its BMC agent has reported; further ones are ignored until
/// some of them register or are deleted. Twice the machines of a large partition, because BMCs are
/// readable before any machine has booted.
pub const BMC_ONLY_MAX: usize = 10_000;

/// `true` if a BMC may report one more machine of its partition.
pub(crate) fn has_bmc_room(tables: &Tables, partition: &PartitionId, address: &str) -> bool {
    let index = tables.index();
    let at = (partition.clone(), address.to_owned());
    let at_bmc = index.bmc_machines.get(&at).copied().unwrap_or_default();
    let unregistered = index.bmc_only.get(partition).copied().unwrap_or_default();
    at_bmc < BMC_MACHINES_MAX && unregistered < BMC_ONLY_MAX
}

/// The unknown machines of a partition that never registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strangers {
    /// The partition in which they asked for a boot.
    pub partition: PartitionId,
    /// Number of them.
    pub machines: usize,
    /// MAC addresses with as many machines as one may have, at most 8.
    pub macs: Vec<MacAddr>,
    /// `true` if further unknown machines are refused now.
    pub is_full: bool,
}

/// Most MAC addresses named; further ones are left out.
const NAMED_MAX: usize = 8;

/// Partitions in which somebody may be inventing machines: one MAC address has as many as it may,
/// or more than a minute's worth never registered.
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
