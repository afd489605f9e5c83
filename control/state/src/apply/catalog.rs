//! Partitions, sizes and what belongs to sizes.

use std::ops::RangeInclusive;

use proto_errors::{Error, ErrorCode};
use proto_types::{PartitionId, SizeId};

use super::pool;
use crate::command::{
    CreatePartition, CreateSize, CreateSizeImageConstraint, CreateSizeReservation, DeletePartition,
    DeleteSize, DeleteSizeImageConstraint, DeleteSizeReservation, UpdatePartition, UpdateSize,
    UpdateSizeImageConstraint, UpdateSizeReservation,
};
use crate::entities::{
    ImageConstraint, Layout, Machine, NUMBER_COOLDOWN_MAX_S, Network, Partition, PoolNumber, Size,
    SizeConstraint, SizeConstraintType, SizeImageConstraint, SizeReservation, Switch,
    UNKNOWN_MACHINES_MAX,
};
use crate::fields::{check_description, in_use, set};
use crate::hardware::{match_size, overlap};
use crate::levels::{NONCE_LEVEL, feature_level};
use crate::meta::{Labels, label};
use crate::reply::Reply;
use crate::tables::{Tables, Tx};
use crate::tenancy::entity::Project;
use crate::version::Requirement;

/// Name servers of a partition.
pub(super) const DNS_MAX: usize = 3;
/// Cables of a machine that a partition may demand.
const UPLINKS_MAX: usize = 64;
/// Time servers of a partition.
pub(super) const NTP_MAX: usize = 10;

type Result = std::result::Result<Reply, Error>;
type Check = std::result::Result<(), Error>;

fn check_partition(tx: &mut Tx<'_>, partition: &Partition) -> Check {
    check_description(&partition.description)?;
    if partition.dns_servers.len() > DNS_MAX {
        return Err(Error::invalid("dns_servers", "must be at most 3"));
    }
    if partition.ntp_servers.len() > NTP_MAX {
        return Err(Error::invalid("ntp_servers", "must be at most 10"));
    }
    let labels = &partition.meta.labels;
    check_number(labels, label::PROVISIONING_VNI, 1..=proto_types::VNI_MAX)?;
    take_provisioning_vni(tx, partition)?;
    check_number(labels, label::NUMBER_COOLDOWN, 0..=NUMBER_COOLDOWN_MAX_S)?;
    check_number(labels, label::UNKNOWN_MACHINES, 1..=UNKNOWN_MACHINES_MAX)?;
    check_number(labels, label::SEGMENT_MTU, 1280..=9216)?;
    check_nonce_label(tx, labels)?;
    let uplinks = labels.get(label::UPLINKS).map(|text| text.parse());
    if !uplinks.is_none_or(|it| it.is_ok_and(|it| (1..=UPLINKS_MAX).contains(&it))) {
        let rule = format!("must be a number in 1..={UPLINKS_MAX}");
        return Err(Error::invalid(label::UPLINKS, rule));
    }
    let exits = labels.get(label::EXIT_VTEPS).map_or("", String::as_str);
    let bad = |part: &str| !part.is_empty() && part.parse::<std::net::IpAddr>().is_err();
    if exits.split(',').map(str::trim).any(bad) {
        return Err(Error::invalid(
            label::EXIT_VTEPS,
            "must be addresses separated by commas",
        ));
    }
    Ok(())
}

/// A label that holds a number in a range.
fn check_number(labels: &Labels, label: &str, range: RangeInclusive<u32>) -> Check {
    let is_good = |text: &String| text.parse().is_ok_and(|number| range.contains(&number));
    if labels.get(label).is_none_or(is_good) {
        return Ok(());
    }
    let rule = format!("must be a number in {}..={}", range.start(), range.end());
    Err(Error::invalid(label, rule))
}

/// The segment that machines boot in is nobody's: no network has its number, no port of a tenant
/// is in it still, and it does not cool down for anybody.
fn take_provisioning_vni(tx: &mut Tx<'_>, partition: &Partition) -> Check {
    let vni = partition.provisioning_vni().get();
    let refuse = |rule: String| Err(Error::invalid(label::PROVISIONING_VNI, rule));
    if tx.tables().index().vrf_networks.contains_key(&vni) {
        return refuse(format!("{vni} is the VRF of a network: choose another"));
    }
    // Several partitions may boot their machines in segments of the same number.
    if pool::is_vrf_used(tx.tables(), vni) {
        return Ok(());
    }
    if let Some(port) = pool::observed_port(tx.tables(), vni) {
        return refuse(format!(
            "{vni} is the segment of switch port {port} still: choose another"
        ));
    }
    pool::take(tx, &PoolNumber::Vrf(vni), None)
}

fn check_nonce_label(tx: &Tx<'_>, labels: &Labels) -> Check {
    let text = labels.get(label::REQUIRE_BMC_NONCE).map(String::as_str);
    let is_good = matches!(text, None | Some("true" | "false"));
    // Programs that do not know the label took any text.
    if is_good || feature_level(tx.tables()) < NONCE_LEVEL {
        return Ok(());
    }
    let rule = "must be \"true\" or \"false\"";
    Err(Error::invalid(label::REQUIRE_BMC_NONCE, rule))
}

pub(super) fn create_partition(tx: &mut Tx<'_>, op: &CreatePartition) -> Result {
    check_partition(tx, &op.0)?;
    tx.create(op.0.clone()).map(Reply::Partition)
}

pub(super) fn update_partition(tx: &mut Tx<'_>, op: &UpdatePartition) -> Result {
    let mut partition: Partition = tx.require(&op.id)?;
    let before = partition.provisioning_vni().get();
    op.lock
        .check("partition", op.id.as_str(), &partition.meta)?;
    set(&mut partition.description, op.description.as_ref());
    set(&mut partition.boot, op.boot.as_ref());
    set(&mut partition.dns_servers, op.dns_servers.as_ref());
    set(&mut partition.ntp_servers, op.ntp_servers.as_ref());
    set(
        &mut partition.mgmt_service_addresses,
        op.mgmt_service_addresses.as_ref(),
    );
    if let Some(labels) = &op.labels {
        labels.apply(&mut partition.meta.labels)?;
    }
    check_partition(tx, &partition)?;
    let partition = tx.update(partition);
    if !pool::is_vrf_used(tx.tables(), before) {
        pool::release(tx, PoolNumber::Vrf(before), None, Some(&op.id));
    }
    Ok(Reply::Partition(partition))
}

pub(super) fn delete_partition(tx: &mut Tx<'_>, op: &DeletePartition) -> Result {
    let partition = tx.tables().require::<Partition>(&op.0)?.clone();
    let tables = tx.tables();
    let machine = tables
        .index()
        .partition_machines
        .get(&op.0)
        .and_then(|set| set.first());
    let network = tables
        .all::<Network>()
        .find(|n| n.partition.as_ref() == Some(&op.0));
    let switch = tables.all::<Switch>().find(|s| s.partition == op.0);
    let reservation = tables
        .all::<SizeReservation>()
        .find(|it| it.partitions.contains(&op.0));
    let holds = machine
        .map(|it| ("machine", it.to_string()))
        .or_else(|| network.map(|it| ("network", it.id.to_string())))
        .or_else(|| switch.map(|it| ("switch", it.id.to_string())))
        .or_else(|| reservation.map(|it| ("size reservation", it.id.to_string())));
    if let Some((kind, by)) = holds {
        return Err(in_use("partition", op.0.as_str(), kind, &by));
    }
    tx.delete::<Partition>(&op.0);
    Ok(Reply::Partition(partition))
}

fn check_size(tx: &Tx<'_>, size: &Size) -> Check {
    if let Some(name) = &size.name {
        crate::fields::check_name(name)?;
    }
    check_description(size.description.as_deref().unwrap_or_default())?;
    for constraint in &size.constraints {
        check_constraint(constraint)?;
    }
    let clash = tx
        .tables()
        .all::<Size>()
        .find(|other| other.id != size.id && overlap(&other.constraints, &size.constraints));
    match clash {
        Some(other) if !size.constraints.is_empty() => Err(Error::new(
            ErrorCode::SizesOverlap,
            format!("size \"{}\" overlaps size \"{}\"", size.id, other.id),
        )
        .object("size", &size.id)),
        _ => Ok(()),
    }
}

fn check_constraint(constraint: &SizeConstraint) -> Check {
    if constraint.min > constraint.max {
        return Err(Error::invalid(
            "constraints.min",
            "must not be greater than max",
        ));
    }
    let named = constraint
        .identifier
        .as_deref()
        .is_some_and(|text| !text.is_empty());
    if named && constraint.kind == SizeConstraintType::Memory {
        return Err(Error::invalid(
            "constraints.identifier",
            "does not belong to memory",
        ));
    }
    Ok(())
}

/// Machines that nobody has take the size that matches them now.
fn match_again(tx: &mut Tx<'_>) {
    let free: Vec<_> = tx
        .tables()
        .all::<Machine>()
        .filter(|m| m.allocation.is_none() && !m.boot_id.is_empty())
        .filter_map(|m| {
            let size = match_size(tx.tables(), &m.hardware);
            (size != m.size).then(|| {
                let mut machine = Machine {
                    size,
                    ..Machine::clone(m)
                };
                super::lifecycle::size_changed(&mut machine);
                machine
            })
        })
        .collect();
    for machine in free {
        tx.save(machine);
    }
}

pub(super) fn create_size(tx: &mut Tx<'_>, op: &CreateSize) -> Result {
    check_size(tx, &op.0)?;
    let size = tx.create(op.0.clone())?;
    match_again(tx);
    Ok(Reply::Size(size))
}

pub(super) fn update_size(tx: &mut Tx<'_>, op: &UpdateSize) -> Result {
    let mut size: Size = tx.require(&op.id)?;
    op.lock.check("size", op.id.as_str(), &size.meta)?;
    size.name = op.name.clone().or(size.name);
    size.description = op.description.clone().or(size.description);
    set(&mut size.constraints, op.constraints.as_ref());
    if let Some(labels) = &op.labels {
        labels.apply(&mut size.meta.labels)?;
    }
    check_size(tx, &size)?;
    let size = tx.update(size);
    match_again(tx);
    Ok(Reply::Size(size))
}

pub(super) fn delete_size(tx: &mut Tx<'_>, op: &DeleteSize) -> Result {
    let size = tx.tables().require::<Size>(&op.0)?.clone();
    let tables = tx.tables();
    let of_size = |machine: &&std::sync::Arc<Machine>| machine.size.as_ref() == Some(&op.0);
    if let Some(machine) = tables.all::<Machine>().find(of_size) {
        return Err(in_use(
            "size",
            op.0.as_str(),
            "machine",
            &machine.id.to_string(),
        ));
    }
    if let Some(it) = tables.all::<SizeReservation>().find(|r| r.size == op.0) {
        return Err(in_use(
            "size",
            op.0.as_str(),
            "size reservation",
            &it.id.to_string(),
        ));
    }
    check_size_unnamed(tables, &op.0)?;
    tx.delete::<Size>(&op.0);
    // Machines that two sizes matched have one now.
    match_again(tx);
    Ok(Reply::Size(size))
}

/// Refuses to delete a size that a layout or a size-image constraint names: neither would be of
/// any use, and a layout could not be changed any more.
fn check_size_unnamed(tables: &Tables, id: &SizeId) -> Check {
    let mut layouts = tables.all::<Layout>();
    if let Some(layout) = layouts.find(|it| it.constraints.sizes.contains(id)) {
        let by = layout.id.as_str();
        return Err(in_use("size", id.as_str(), "filesystem layout", by));
    }
    if tables.get::<SizeImageConstraint>(id).is_some() {
        let by = id.as_str();
        return Err(in_use("size", id.as_str(), "size-image constraint", by));
    }
    Ok(())
}

fn check_reservation(tx: &Tx<'_>, reservation: &SizeReservation) -> Check {
    crate::fields::check_name(&reservation.name)?;
    check_description(&reservation.description)?;
    if reservation.amount == 0 {
        return Err(Error::invalid("amount", "must be greater than 0"));
    }
    if reservation.partitions.is_empty() {
        return Err(Error::invalid("partitions", "must name at least one"));
    }
    tx.tables().require::<Project>(&reservation.project)?;
    tx.tables().require::<Size>(&reservation.size)?;
    let known = |id: &PartitionId| tx.tables().require::<Partition>(id).map(drop);
    reservation.partitions.iter().try_for_each(known)
}

pub(super) fn create_reservation(tx: &mut Tx<'_>, op: &CreateSizeReservation) -> Result {
    check_reservation(tx, &op.0)?;
    tx.create(op.0.clone()).map(Reply::SizeReservation)
}

pub(super) fn update_reservation(tx: &mut Tx<'_>, op: &UpdateSizeReservation) -> Result {
    let mut reservation: SizeReservation = tx.require(&op.id)?;
    op.lock
        .check("size-reservation", &op.id.to_string(), &reservation.meta)?;
    set(&mut reservation.name, op.name.as_ref());
    set(&mut reservation.description, op.description.as_ref());
    set(&mut reservation.partitions, op.partitions.as_ref());
    set(&mut reservation.amount, op.amount.as_ref());
    if let Some(labels) = &op.labels {
        labels.apply(&mut reservation.meta.labels)?;
    }
    check_reservation(tx, &reservation)?;
    Ok(Reply::SizeReservation(tx.update(reservation)))
}

pub(super) fn delete_reservation(tx: &mut Tx<'_>, op: &DeleteSizeReservation) -> Result {
    let old = tx.delete::<SizeReservation>(&op.0);
    old.map(Reply::SizeReservation)
        .ok_or_else(|| Error::not_found("size-reservation", op.0))
}

fn check_image_constraints(tx: &Tx<'_>, size: &SizeId, all: &[ImageConstraint]) -> Check {
    tx.tables().require::<Size>(size)?;
    all.iter()
        .try_for_each(|it| Requirement::parse(&it.semver_match).map(drop))
}

pub(super) fn create_image_constraint(tx: &mut Tx<'_>, op: &CreateSizeImageConstraint) -> Result {
    check_image_constraints(tx, &op.0.size, &op.0.image_constraints)?;
    tx.create(op.0.clone()).map(Reply::SizeImageConstraint)
}

pub(super) fn update_image_constraint(tx: &mut Tx<'_>, op: &UpdateSizeImageConstraint) -> Result {
    let mut constraint: SizeImageConstraint = tx.require(&op.size)?;
    op.lock
        .check("size-image-constraint", op.size.as_str(), &constraint.meta)?;
    constraint.name = op.name.clone().or(constraint.name);
    constraint.description = op.description.clone().or(constraint.description);
    set(
        &mut constraint.image_constraints,
        op.image_constraints.as_ref(),
    );
    check_image_constraints(tx, &op.size, &constraint.image_constraints)?;
    Ok(Reply::SizeImageConstraint(tx.update(constraint)))
}

pub(super) fn delete_image_constraint(tx: &mut Tx<'_>, op: &DeleteSizeImageConstraint) -> Result {
    let old = tx.delete::<SizeImageConstraint>(&op.0);
    old.map(Reply::SizeImageConstraint)
        .ok_or_else(|| Error::not_found("size-image-constraint", &op.0))
}
