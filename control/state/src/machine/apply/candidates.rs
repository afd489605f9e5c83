//! Choice of the machine for an allocation.

use std::collections::{BTreeMap, BTreeSet};

use proto_errors::{Error, ErrorCode};
use proto_types::{ClaimId, MachineId, PartitionId, ProjectId, SizeId, Timestamp};
use uuid::Uuid;

use crate::catalog::entity::{Partition, Size, SizeReservation};
use crate::lease::read::check_use;
use crate::machine::command::AllocateMachine;
use crate::machine::entity::{Availability, Machine, MachinePool};
use crate::machine::read::{candidates, obstacle};
use crate::pool::entity::PoolHost;
use crate::reply::CheckResult;
use crate::tables::Tables;

/// The refusal of a machine that cannot be allocated now.
pub(crate) fn not_ready(machine: &Machine, why: &str) -> Error {
    Error::new(
        ErrorCode::MachineNotReady,
        format!("machine \"{}\" cannot be allocated now: {why}", machine.id),
    )
    .object("machine", machine.id)
}

/// The machine that a request names, if it can be allocated to the request's project. Tainted ones of
/// the site can. `claim` is the claim that the request is made for; `None` means that it is a call for
/// a machine.
pub(crate) fn chosen(
    tables: &Tables,
    op: &AllocateMachine,
    id: MachineId,
    claim: Option<ClaimId>,
    now: Timestamp,
) -> Result<Machine, Error> {
    let machine = tables.require::<Machine>(&id)?;
    check_host(tables, machine, claim)?;
    check_use(tables, machine, op.project, now)?;
    if machine.allocation.is_some() {
        return Err(Error::new(
            ErrorCode::MachineAllocated,
            format!("machine \"{id}\" is already allocated"),
        )
        .object("machine", id)
        .hint(format!("free it first: metalmesh machine free {id}")));
    }
    // Only administrators name machines of the site; owners and lessees name their own.
    let is_owned = machine.tenure.pool() != MachinePool::Shared;
    if is_owned && machine.condition.state == Availability::Tainted {
        let why = format!("it is tainted: {}", machine.condition.description);
        return Err(not_ready(machine, &why));
    }
    match obstacle(tables, machine) {
        None => Ok(Machine::clone(machine)),
        Some(why) => Err(not_ready(machine, &why)),
    }
}

/// Refuses a host of a pool, unless it is bound to the claim that the request is made for.
fn check_host(tables: &Tables, machine: &Machine, claim: Option<ClaimId>) -> CheckResult {
    let Some(pool) = &machine.pool else {
        return Ok(());
    };
    let id = machine.id;
    let binding = tables.get::<PoolHost>(&id);
    let binding = binding.and_then(|host| host.binding.as_ref());
    if binding.is_some_and(|binding| Some(binding.claim) == claim) {
        return Ok(());
    }
    let message =
        format!("machine \"{id}\" is a host of pool \"{pool}\": projects get it by claims alone");
    Err(Error::new(ErrorCode::HostOfPool, message).object("machine", id))
}

/// The best machine on offer of the partition and size of a request: in the rack that its project
/// uses least.
pub(crate) fn best(tables: &Tables, op: &AllocateMachine) -> Result<Machine, Error> {
    let (Some(partition), Some(size)) = (&op.partition, &op.size) else {
        return Err(Error::invalid("partition", "and size are missing"));
    };
    tables.require::<Partition>(partition)?;
    tables.require::<Size>(size)?;
    check_reservations(tables, op.project, partition, size)?;
    let load = used_racks(tables, op, partition);
    let class = (partition.clone(), size.clone());
    let offered = tables.index().offered.get(&class).into_iter().flatten();
    let mut racks: Vec<_> = offered
        .map(|(rack, machines)| {
            let load = load.get(rack.as_str()).copied().unwrap_or_default();
            (load, spread(op.seed, rack), machines)
        })
        .collect();
    racks.sort_by_key(|(load, order, _)| (*load, *order));
    racks
        .into_iter()
        .find_map(|(_, _, machines)| first_from(tables, machines, op.seed))
        .ok_or_else(|| {
            Error::new(
                ErrorCode::NoMachineAvailable,
                format!("no machine of size \"{size}\" is available in partition \"{partition}\""),
            )
        })
}

/// Order of equally full racks, different for each seed: otherwise every project would fill the
/// same rack first.
fn spread(seed: u64, rack: &str) -> u64 {
    // FNV-1a. The standard library's hasher may differ between builds, and all replicas must choose
    // the same machine.
    rack.bytes()
        .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// The first allocatable machine, beginning at an id that the seed chooses: a broken machine is not
/// handed out to every caller in turn.
fn first_from(tables: &Tables, machines: &BTreeSet<MachineId>, seed: u64) -> Option<Machine> {
    let start = MachineId::new(Uuid::from_u64_pair(seed, seed));
    machines
        .range(start..)
        .chain(machines.range(..start))
        .filter_map(|id| tables.get::<Machine>(id))
        .find(|machine| obstacle(tables, machine).is_none())
        .map(|machine| Machine::clone(machine))
}

/// Load of racks: first the project's machines with the same placement labels, then all of its
/// machines of the same kind.
fn used_racks<'a>(
    tables: &'a Tables,
    op: &AllocateMachine,
    partition: &PartitionId,
) -> BTreeMap<&'a str, (usize, usize)> {
    let mut racks: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mine = tables
        .index()
        .project_machines
        .get(&op.project)
        .into_iter()
        .flatten();
    for machine in mine.filter_map(|id| tables.get::<Machine>(id)) {
        let Some(allocation) = &machine.allocation else {
            continue;
        };
        if machine.partition.as_ref() != Some(partition) || allocation.kind != op.kind {
            continue;
        }
        let rack = racks.entry(machine.rack.as_str()).or_default();
        let same =
            !op.placement_labels.is_empty() && allocation.placement_labels == op.placement_labels;
        rack.0 += usize::from(same);
        rack.1 += 1;
    }
    racks
}

/// Refuses when the free machines are no more than other projects reserved and do not use yet. A
/// project with an unused reservation of its own passes.
fn check_reservations(
    tables: &Tables,
    project: ProjectId,
    partition: &PartitionId,
    size: &SizeId,
) -> CheckResult {
    let mut reserved: BTreeMap<ProjectId, usize> = BTreeMap::new();
    for reservation in tables.all::<SizeReservation>() {
        if reservation.size == *size && reservation.partitions.contains(partition) {
            let amount = usize::try_from(reservation.amount).unwrap_or(usize::MAX);
            let sum = reserved.entry(reservation.project).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
    let unused = |project: &ProjectId, amount: usize| {
        let machines = tables
            .index()
            .project_machines
            .get(project)
            .into_iter()
            .flatten();
        let used = machines
            .filter_map(|id| tables.get::<Machine>(id))
            .filter(|m| m.partition.as_ref() == Some(partition) && m.size.as_ref() == Some(size))
            .filter(|m| m.uses_reservation())
            .count();
        amount.saturating_sub(used)
    };
    let own = reserved
        .get(&project)
        .map_or(0, |amount| unused(&project, *amount));
    let others: usize = reserved
        .iter()
        .filter(|(p, _)| **p != project)
        .map(|(p, amount)| unused(p, *amount))
        .sum();
    if own > 0 || others == 0 {
        return Ok(());
    }
    // Counted last: it looks at every machine on offer, and most requests need no such look.
    let free = candidates(tables, partition, size).count();
    // Without a free machine the caller gets `NoMachineAvailable`, which says more than a
    // reservation.
    if free == 0 || others < free {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::SizeReserved,
        format!("the {free} free machines of size \"{size}\" in \"{partition}\" are reserved"),
    ))
}
