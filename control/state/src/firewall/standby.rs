//! Active and standby: which of a project's firewalls routes prefer.
//!
//! Two firewalls between the same networks announce the same routes. Control orders them, and each
//! makes its AS path longer by its place, so that BGP takes the first one that is there. When it
//! fails, its routes go within BGP's hold time, and the next one carries the traffic without a word
//! of control. The order is computed from the state alone, so that every node finds the same.

use std::collections::BTreeSet;

use proto_types::{AllocationId, MachineId, NetworkId, PartitionId, ProjectId, Timestamp};

use crate::firewall::health::ailment;
use crate::firewall::read::firewall_allocation;
use crate::machine::entity::Machine;
use crate::machine::read::project_machines;
use crate::tables::Tables;

/// Longest distance, as the published firewall manager has it. Firewalls beyond it are equal.
pub const DISTANCE_MAX: u32 = 8;

/// A firewall of a project, as far as it decides about the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandbyCandidate {
    /// The firewall.
    pub machine: MachineId,
    /// Its partition: routes of two partitions do not compete.
    pub partition: Option<PartitionId>,
    /// The private networks that it joins.
    pub networks: BTreeSet<NetworkId>,
    /// Time of its allocation, or of the firewall whose place it took.
    pub since: Timestamp,
    /// `true` if its agent reported that the rules are in its kernel, and it gives signs of life.
    pub is_healthy: bool,
    /// `true` if another firewall took its place.
    pub is_replaced: bool,
}

impl StandbyCandidate {
    /// `true` if both announce routes into one network.
    fn competes_with(&self, other: &Self) -> bool {
        self.partition == other.partition && !self.networks.is_disjoint(&other.networks)
    }

    /// The healthy ones come first, then those that are not replaced, then the oldest: a new firewall
    /// takes no flow of one that works, unless it was told to take its place. A replacement that
    /// fails gives the place back. The id decides between two of one moment.
    fn rank(&self) -> (bool, bool, Timestamp, MachineId) {
        (!self.is_healthy, self.is_replaced, self.since, self.machine)
    }
}

/// The distance of a firewall: the number of its competitors that are preferred to it, at most
/// [`DISTANCE_MAX`]. `candidates` may contain the firewall itself.
pub fn standby_distance(own: &StandbyCandidate, candidates: &[StandbyCandidate]) -> u32 {
    let preferred = candidates
        .iter()
        .filter(|other| own.competes_with(other) && other.rank() < own.rank());
    let count = u32::try_from(preferred.count()).unwrap_or(DISTANCE_MAX);
    count.min(DISTANCE_MAX)
}

/// The distance of a firewall now: the longest while it is being freed, so that flows leave it. 0 for
/// a machine that is no firewall.
pub(crate) fn firewall_distance(tables: &Tables, machine: MachineId) -> u32 {
    let Some(allocation) = firewall_allocation(tables, machine) else {
        return 0;
    };
    let candidates = candidates(tables, allocation.project);
    let own = candidates.iter().find(|own| own.machine == machine);
    own.map_or(DISTANCE_MAX, |own| standby_distance(own, &candidates))
}

/// `true` if control prefers the routes of a firewall to those of another one now.
pub(crate) fn is_preferred(tables: &Tables, firewall: MachineId, other: MachineId) -> bool {
    firewall_distance(tables, firewall) < firewall_distance(tables, other)
}

/// The firewalls of a project, without those that are being freed.
fn candidates(tables: &Tables, project: ProjectId) -> Vec<StandbyCandidate> {
    let present = || project_machines(tables, project).filter(|machine| !machine.is_leaving());
    let replaced: BTreeSet<AllocationId> = present().filter_map(|machine| taken(machine)).collect();
    let found = present().filter_map(|machine| candidate(tables, machine, &replaced));
    found.collect()
}

/// The allocation whose place a machine took.
fn taken(machine: &Machine) -> Option<AllocationId> {
    let replaced = machine.allocation.as_ref()?.replaces.as_ref()?;
    replaced.taken_at.map(|_| replaced.allocation)
}

/// A machine as a candidate. `None` if it is no firewall.
fn candidate(
    tables: &Tables,
    machine: &Machine,
    replaced: &BTreeSet<AllocationId>,
) -> Option<StandbyCandidate> {
    let allocation = firewall_allocation(tables, machine.id)?;
    let networks = allocation.networks.iter();
    let networks = networks.filter(|network| network.kind.is_child());
    Some(StandbyCandidate {
        machine: machine.id,
        partition: machine.partition.clone(),
        networks: networks.map(|network| network.network.clone()).collect(),
        since: allocation.senior_since(),
        is_healthy: ailment(tables, machine).is_none(),
        is_replaced: replaced.contains(&allocation.id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: u128, since: u64, is_healthy: bool) -> StandbyCandidate {
        StandbyCandidate {
            machine: MachineId::new(uuid::Uuid::from_u128(id)),
            partition: "p1".parse().ok(),
            networks: ["private".parse().unwrap()].into(),
            since: Timestamp::from_ms(since),
            is_healthy,
            is_replaced: false,
        }
    }

    fn distances(candidates: &[StandbyCandidate]) -> Vec<u32> {
        let of = |own| standby_distance(own, candidates);
        candidates.iter().map(of).collect()
    }

    #[test]
    fn the_oldest_healthy_one_is_active() {
        let (yes, no) = (true, false);
        for (candidates, wanted) in [
            (vec![candidate(1, 10, yes)], vec![0]),
            (vec![candidate(1, 10, no)], vec![0]),
            (
                vec![candidate(1, 10, yes), candidate(2, 20, yes)],
                vec![0, 1],
            ),
            (
                vec![candidate(1, 20, yes), candidate(2, 10, yes)],
                vec![1, 0],
            ),
            (
                vec![candidate(1, 10, no), candidate(2, 20, yes)],
                vec![1, 0],
            ),
            (vec![candidate(1, 10, no), candidate(2, 20, no)], vec![0, 1]),
            (
                vec![candidate(1, 10, yes), candidate(2, 10, yes)],
                vec![0, 1],
            ),
            (
                vec![
                    candidate(3, 5, no),
                    candidate(1, 10, yes),
                    candidate(2, 20, yes),
                ],
                vec![2, 0, 1],
            ),
        ] {
            assert_eq!(distances(&candidates), wanted, "{candidates:?}");
        }
    }

    #[test]
    fn a_replaced_firewall_is_the_last_of_the_healthy_ones() {
        let (yes, no) = (true, false);
        let replaced = |is_healthy| StandbyCandidate {
            is_replaced: true,
            ..candidate(1, 10, is_healthy)
        };
        // The second is the replacement, with the seniority of the first.
        for (candidates, wanted) in [
            (vec![replaced(yes), candidate(2, 10, yes)], vec![1, 0]),
            (vec![replaced(yes), candidate(2, 10, no)], vec![0, 1]),
            (vec![replaced(no), candidate(2, 10, no)], vec![1, 0]),
            (
                vec![replaced(yes), candidate(2, 10, yes), candidate(3, 20, yes)],
                vec![2, 0, 1],
            ),
            (
                vec![replaced(yes), candidate(2, 10, no), candidate(3, 20, yes)],
                vec![1, 2, 0],
            ),
            (
                vec![replaced(no), candidate(2, 10, yes), candidate(3, 5, yes)],
                vec![2, 1, 0],
            ),
        ] {
            assert_eq!(distances(&candidates), wanted, "{candidates:?}");
        }
    }

    #[test]
    fn only_firewalls_of_one_network_and_partition_compete() {
        let first = candidate(1, 10, true);
        let other_network = StandbyCandidate {
            networks: ["other".parse().unwrap()].into(),
            ..candidate(2, 20, true)
        };
        let other_partition = StandbyCandidate {
            partition: "p2".parse().ok(),
            ..candidate(3, 30, true)
        };
        let both = StandbyCandidate {
            networks: ["private", "other"]
                .map(|name| name.parse().unwrap())
                .into(),
            ..candidate(4, 40, true)
        };
        let all = [first, other_network, other_partition, both];
        assert_eq!(distances(&all), [0, 0, 0, 2]);
    }

    #[test]
    fn a_distance_has_a_limit() {
        let many: Vec<StandbyCandidate> = (1..=12)
            .map(|number| candidate(number, u64::try_from(number).unwrap(), true))
            .collect();
        assert_eq!(distances(&many)[11], DISTANCE_MAX);
    }
}
