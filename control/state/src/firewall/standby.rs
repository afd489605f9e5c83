//! Active and standby: which of a project's firewalls routes prefer.
//!
//! Two firewalls between the same networks announce the same routes. Control orders them, and each
//! makes its AS path longer by its place, so that BGP takes the first one that is there. When it
//! fails, its routes go within BGP's hold time, and the next one carries the traffic without a word
//! of control. The order is computed from the state alone, so that every node finds the same.

use std::collections::BTreeSet;

use proto_types::{MachineId, NetworkId, PartitionId, Timestamp};

use crate::firewall::entity::FirewallStatus;
use crate::firewall::read::firewall_allocation;
use crate::machine::entity::{EventLog, Liveliness, Machine, Phase};
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
    /// Time of its allocation.
    pub since: Timestamp,
    /// `true` if its agent reported that the rules are in its kernel, and it gives signs of life.
    pub is_healthy: bool,
}

impl StandbyCandidate {
    /// `true` if both announce routes into one network.
    fn competes_with(&self, other: &Self) -> bool {
        self.partition == other.partition && !self.networks.is_disjoint(&other.networks)
    }

    /// The healthy ones come first, then the oldest: a new firewall takes no flow of one that works.
    /// The id decides between two of one moment.
    fn rank(&self) -> (bool, Timestamp, MachineId) {
        (!self.is_healthy, self.since, self.machine)
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
    let machines = project_machines(tables, allocation.project);
    let candidates: Vec<StandbyCandidate> = machines
        .filter_map(|machine| candidate(tables, machine))
        .collect();
    let own = candidates.iter().find(|own| own.machine == machine);
    own.map_or(DISTANCE_MAX, |own| standby_distance(own, &candidates))
}

/// A machine as a candidate. `None` if it is no firewall, or is being freed.
fn candidate(tables: &Tables, machine: &Machine) -> Option<StandbyCandidate> {
    let allocation = firewall_allocation(tables, machine.id)?;
    if machine.is_leaving() {
        return None;
    }
    let networks = allocation.networks.iter();
    let networks = networks.filter(|network| network.kind.is_child());
    Some(StandbyCandidate {
        machine: machine.id,
        partition: machine.partition.clone(),
        networks: networks.map(|network| network.network.clone()).collect(),
        since: allocation.created_at,
        is_healthy: is_healthy(tables, machine),
    })
}

fn is_healthy(tables: &Tables, machine: &Machine) -> bool {
    let allocation = machine.allocation.as_ref().map(|found| found.id);
    let status = tables.get::<FirewallStatus>(&machine.id);
    let is_applied =
        status.is_some_and(|status| Some(status.allocation) == allocation && has_applied(status));
    let log = tables.get::<EventLog>(&machine.id);
    machine.phase == Phase::Running && is_applied && log.is_some_and(|log| is_alive(log))
}

/// `true` if the newest rules are in the kernel.
pub(crate) fn has_applied(status: &FirewallStatus) -> bool {
    status.applied_generation > 0 && status.error.is_none()
}

/// `true` if the machine gives signs of life and completes its boots.
pub(crate) fn is_alive(log: &EventLog) -> bool {
    log.liveliness == Liveliness::Alive && !log.crash_loop
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
