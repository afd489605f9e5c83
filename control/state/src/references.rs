//! References between rows of different resources: the target of a reference must exist when the
//! referring row is written, and cannot be deleted while it is referred to.
//!
//! All of them are checked here, so that no resource depends on those that refer to it.

use proto_errors::{Error, ErrorCode};
use proto_types::{
    ImageId, LayoutId, MachineId, NetworkId, PartitionId, ProjectId, SizeId, TenantId,
};

use crate::catalog::entity::{Size, SizeReservation};
use crate::identity::entity::{Certificate, User};
use crate::machine::entity::{Machine, MachinePool};
use crate::machine::read::hammer_may_run;
use crate::network::entity::{Ip, IpKey, Network};
use crate::reply::CheckResult;
use crate::switch::entity::Switch;
use crate::tables::{Tables, Tx};

/// The kind and the key of a row that refers to another one.
pub(crate) type Holder = (&'static str, String);

/// The first holder of a project: claims, machines that it has, owns or leases, node allocations,
/// addresses, networks and reservations.
pub(crate) fn holder_of_project(tables: &Tables, id: ProjectId) -> Option<Holder> {
    let machines = tables.index().project_machines.get(&id);
    let machine = machines.and_then(|machines| machines.first());
    let ip = tables.all::<Ip>().find(|ip| ip.project == id);
    let mut networks = tables.all::<Network>();
    let network = networks.find(|network| network.project == Some(id));
    let mut reservations = tables.all::<SizeReservation>();
    let reservation = reservations.find(|reservation| reservation.project == id);
    let claims = tables.index().claims.of_project(id);
    let claim = claims.and_then(|claims| claims.first());
    let tenured = tables.index().tenured_machines.get(&id);
    let tenured = tenured.and_then(|machines| machines.first());
    let allocations = tables.index().pool_allocations.get(&MachinePool::Of(id));
    let allocation = allocations.and_then(|allocations| allocations.first());
    claim
        .map(|claim| ("claim", claim.to_string()))
        .or_else(|| {
            let machine = machine.or(tenured);
            machine.map(|machine| ("machine", machine.to_string()))
        })
        .or_else(|| allocation.map(|found| ("node allocation", found.to_string())))
        .or_else(|| ip.map(|ip| ("ip", ip.ip.to_string())))
        .or_else(|| network.map(|network| ("network", network.id.to_string())))
        .or_else(|| reservation.map(|found| ("size reservation", found.id.to_string())))
}

/// The first holder of a partition: machines, networks, switches and reservations.
pub(crate) fn holder_of_partition(tables: &Tables, id: &PartitionId) -> Option<Holder> {
    let machines = tables.index().partition_machines.get(id);
    let machine = machines.and_then(|machines| machines.first());
    let mut networks = tables.all::<Network>();
    let network = networks.find(|network| network.partition.as_ref() == Some(id));
    let mut switches = tables.all::<Switch>();
    let switch = switches.find(|switch| switch.partition == *id);
    let mut reservations = tables.all::<SizeReservation>();
    let reservation = reservations.find(|reservation| reservation.partitions.contains(id));
    machine
        .map(|machine| ("machine", machine.to_string()))
        .or_else(|| network.map(|network| ("network", network.id.to_string())))
        .or_else(|| switch.map(|switch| ("switch", switch.id.to_string())))
        .or_else(|| reservation.map(|found| ("size reservation", found.id.to_string())))
}

/// An allocated machine of a partition, also one that is being reclaimed.
pub(crate) fn allocated_machine(tables: &Tables, id: &PartitionId) -> Option<MachineId> {
    let machines = tables.index().partition_machines.get(id)?;
    let mut machines = machines.iter();
    let is_allocated = |id: &&MachineId| {
        let machine = tables.get::<Machine>(id);
        machine.is_some_and(|machine| machine.allocation.is_some())
    };
    machines.find(is_allocated).copied()
}

/// The first holder of a network: its children, machines and addresses.
pub(crate) fn holder_of_network(tables: &Tables, id: &NetworkId) -> Option<Holder> {
    let children = tables.index().children.get(id);
    let child = children.and_then(|children| children.first());
    let machine = machine_where(tables, |machine| {
        let allocation = machine.allocation.as_ref();
        allocation.is_some_and(|allocation| {
            let mut networks = allocation.networks.iter();
            networks.any(|network| network.network == *id)
        })
    });
    let ips = tables.index().network_ips.get(id);
    let ip = ips.and_then(|ips| ips.first());
    child
        .map(|child| ("network", child.to_string()))
        .or_else(|| machine.map(|machine| ("machine", machine.to_string())))
        .or_else(|| ip.map(|key: &IpKey| ("ip", key.ip.to_string())))
}

/// A machine of a size.
pub(crate) fn machine_of_size(tables: &Tables, id: &SizeId) -> Option<MachineId> {
    machine_where(tables, |machine| machine.size.as_ref() == Some(id))
}

/// A machine that is allocated with an image.
pub(crate) fn machine_of_image(tables: &Tables, id: &ImageId) -> Option<MachineId> {
    machine_where(tables, |machine| {
        let allocation = machine.allocation.as_ref();
        allocation.is_some_and(|allocation| allocation.image == *id)
    })
}

/// A machine that is allocated with a layout.
pub(crate) fn machine_of_layout(tables: &Tables, id: &LayoutId) -> Option<MachineId> {
    machine_where(tables, |machine| {
        let allocation = machine.allocation.as_ref();
        allocation.is_some_and(|allocation| allocation.layout.id == *id)
    })
}

fn machine_where(tables: &Tables, is_asked: impl Fn(&Machine) -> bool) -> Option<MachineId> {
    let mut machines = tables.all::<Machine>();
    machines
        .find(|machine| is_asked(machine))
        .map(|machine| machine.id)
}

/// `true` if there is a built-in user of this login.
pub(crate) fn is_user(tables: &Tables, login: &TenantId) -> bool {
    tables.get::<User>(login).is_some()
}

/// Refuses sizes that do not exist.
pub(crate) fn check_sizes<'a>(
    tables: &Tables,
    mut sizes: impl Iterator<Item = &'a SizeId>,
) -> CheckResult {
    sizes.try_for_each(|size| tables.require::<Size>(size).map(drop))
}

/// Refuses a machine that is not allocated to the project. Another project's machine is reported
/// as not found, so that callers cannot probe for machines of others.
pub(crate) fn check_machine(
    tables: &Tables,
    machine: &MachineId,
    project: ProjectId,
) -> CheckResult {
    let found = tables.get::<Machine>(machine);
    if found.is_some_and(|machine| machine.is_held_by(project)) {
        Ok(())
    } else {
        Err(Error::not_found("machine", machine))
    }
}

/// Refuses a certificate whose allocation or boot has ended since it was requested.
pub(crate) fn check_allocation(tx: &Tx<'_>, certificate: &Certificate) -> CheckResult {
    if let (Some(id), None) = (&certificate.machine, certificate.allocation) {
        return check_hammer(tx, *id);
    }
    let allocation_of = |id: &MachineId| {
        tx.get::<Machine>(id)
            .and_then(|machine| machine.allocation.as_ref())
            .map(|a| a.id)
    };
    let current = certificate.machine.as_ref().and_then(allocation_of);
    if certificate.allocation.is_some() && certificate.allocation != current {
        return Err(Error::new(
            ErrorCode::MachineNotAllocated,
            format!("the allocation of \"{}\" is over", certificate.identity),
        ));
    }
    Ok(())
}

/// Refuses a certificate for hammer in a phase in which it may not run.
fn check_hammer(tx: &Tx<'_>, id: MachineId) -> CheckResult {
    let machine = tx.tables().require::<Machine>(&id)?;
    if hammer_may_run(machine) {
        return Ok(());
    }
    let text = format!(
        "machine \"{id}\" is {}: hammer does not run on it now",
        machine.phase
    );
    Err(Error::new(ErrorCode::WrongPhase, text).object("machine", id))
}
