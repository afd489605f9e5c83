//! Which machines are on offer, and which one is the best for a request.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, PartitionId, ProjectId, SizeId};

use crate::command::AllocateMachine;
use crate::entities::{
    Availability, EventKind, EventLog, Liveliness, Machine, Partition, Phase, Size,
    SizeReservation, Switch,
};
use crate::tables::Tables;

type Result<T> = std::result::Result<T, Error>;

pub(super) fn not_ready(machine: &Machine, why: &str) -> Error {
    Error::new(
        ErrorCode::MachineNotReady,
        format!("machine \"{}\" cannot be allocated now: {why}", machine.id),
    )
    .object("machine", machine.id)
}

/// Why a machine cannot be allocated; tainted ones can be by their id.
pub(crate) fn obstacle(tables: &Tables, machine: &Machine) -> Option<String> {
    let log = tables.get::<EventLog>(&machine.id);
    let state = log.and_then(|log| log.state);
    if machine.phase != Phase::Waiting || state != Some(EventKind::Waiting) {
        let reason = if machine.reason.is_empty() {
            String::new()
        } else {
            format!(" ({})", machine.reason)
        };
        return Some(format!("it is {}{reason}", machine.phase));
    }
    if machine.dirty {
        return Some("its disks are not clean".into());
    }
    if machine.size.is_none() {
        return Some("no size matches it".into());
    }
    if !is_cabled(tables, machine) {
        return Some("its cables are not known: it hears no registered switch by LLDP".into());
    }
    if machine.condition.state == Availability::Locked {
        return Some(format!("it is locked: {}", machine.condition.description));
    }
    let is_alive =
        log.is_some_and(|log| log.liveliness == Liveliness::Alive && !log.failed_reclaim);
    (!is_alive).then(|| "it gives no sign of life".into())
}

/// Whether its port can be moved; where no switch is managed, nothing has to be.
fn is_cabled(tables: &Tables, machine: &Machine) -> bool {
    let is_managed = || {
        tables
            .all::<Switch>()
            .any(|switch| machine.partition.as_ref() == Some(&switch.partition))
    };
    !machine.links.is_empty() || !is_managed()
}

pub(super) fn chosen(tables: &Tables, id: MachineId) -> Result<Machine> {
    let machine = tables.require::<Machine>(&id)?;
    if machine.allocation.is_some() {
        return Err(Error::new(
            ErrorCode::MachineAllocated,
            format!("machine \"{id}\" is already allocated"),
        )
        .object("machine", id)
        .hint(format!("free it first: metalmesh machine free {id}")));
    }
    match obstacle(tables, machine) {
        None => Ok(Machine::clone(machine)),
        Some(why) => Err(not_ready(machine, &why)),
    }
}

/// Machines of a size in a partition that anyone may have now, in the order of ids.
pub(crate) fn candidates<'a>(
    tables: &'a Tables,
    partition: &PartitionId,
    size: &'a SizeId,
) -> impl Iterator<Item = &'a Arc<Machine>> {
    let machines = tables
        .index()
        .partition_machines
        .get(partition)
        .into_iter()
        .flatten();
    machines
        .filter_map(|id| tables.get::<Machine>(id))
        .filter(move |machine| {
            machine.size.as_ref() == Some(size)
                && machine.allocation.is_none()
                && machine.condition.state == Availability::Available
                && obstacle(tables, machine).is_none()
        })
}

pub(super) fn best(tables: &Tables, op: &AllocateMachine) -> Result<Machine> {
    let (Some(partition), Some(size)) = (&op.partition, &op.size) else {
        return Err(Error::invalid("partition", "and size are missing"));
    };
    tables.require::<Partition>(partition)?;
    tables.require::<Size>(size)?;
    let candidates: Vec<_> = candidates(tables, partition, size).collect();
    if candidates.is_empty() {
        return Err(Error::new(
            ErrorCode::NoMachineAvailable,
            format!("no machine of size \"{size}\" is available in partition \"{partition}\""),
        ));
    }
    check_reservations(tables, op.project, partition, size, candidates.len())?;
    let racks = used_racks(tables, op, partition);
    let load = |machine: &Machine| {
        racks
            .get(machine.rack.as_str())
            .copied()
            .unwrap_or_default()
    };
    let least = candidates
        .iter()
        .map(|machine| load(machine))
        .min()
        .unwrap_or_default();
    let equal: Vec<_> = candidates
        .into_iter()
        .filter(|machine| load(machine) == least)
        .collect();
    let count = u64::try_from(equal.len()).unwrap_or(1).max(1);
    let at = usize::try_from(op.seed % count).unwrap_or_default();
    let machine = equal.get(at).map(|machine| Machine::clone(machine));
    machine.ok_or_else(|| Error::new(ErrorCode::NoMachineAvailable, "no machine is available"))
}

/// How full racks are with what should be spread: first machines of the project with the same
/// placement labels, then its machines of the same kind.
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

/// What others reserved and do not use yet must stay free, unless the project has a reservation
/// of its own left.
fn check_reservations(
    tables: &Tables,
    project: ProjectId,
    partition: &PartitionId,
    size: &SizeId,
    free: usize,
) -> Result<()> {
    let mut reserved: BTreeMap<ProjectId, usize> = BTreeMap::new();
    for it in tables.all::<SizeReservation>() {
        if it.size == *size && it.partitions.contains(partition) {
            let amount = usize::try_from(it.amount).unwrap_or(usize::MAX);
            let sum = reserved.entry(it.project).or_default();
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
    if own > 0 || others < free {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::SizeReserved,
        format!("the {free} free machines of size \"{size}\" in \"{partition}\" are reserved"),
    ))
}
