//! Partitions.

use std::ops::RangeInclusive;

use proto_errors::{Error, ErrorCode};

use crate::catalog::command::{CreatePartition, DeletePartition, UpdatePartition};
use crate::catalog::entity::{NUMBER_COOLDOWN_MAX_S, Partition, UNKNOWN_MACHINES_MAX};
use crate::fields::{check_description, in_use, set};
use crate::levels::{FABRIC_LABELS, require_level};
use crate::meta::{Labels, label};
use crate::network::apply::pool;
use crate::network::entity::{PoolNumber, VRF_MAX};
use crate::references;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Name servers of a partition.
pub(crate) const DNS_MAX: usize = 3;
/// Highest value of the uplinks label, cables; a higher one is refused.
const UPLINKS_MAX: usize = 64;
/// Most time servers of a partition; more are refused.
pub(crate) const NTP_MAX: usize = 10;

fn check_partition(tx: &mut Tx<'_>, partition: &Partition) -> CheckResult {
    check_description(&partition.description)?;
    if partition.dns_servers.len() > DNS_MAX {
        return Err(Error::invalid("dns_servers", "must be at most 3"));
    }
    if partition.ntp_servers.len() > NTP_MAX {
        return Err(Error::invalid("ntp_servers", "must be at most 10"));
    }
    let labels = &partition.meta.labels;
    check_reserved(labels)?;
    // Older control nodes would refuse the labels as unknown.
    for new in [label::FABRIC, label::BOND] {
        if labels.contains_key(new) {
            require_level(tx.tables(), new, FABRIC_LABELS)?;
        }
    }
    check_number(labels, label::PROVISIONING_VNI, 1..=VRF_MAX)?;
    take_provisioning_vni(tx, partition)?;
    check_number(labels, label::NUMBER_COOLDOWN, 0..=NUMBER_COOLDOWN_MAX_S)?;
    check_number(labels, label::UNKNOWN_MACHINES, 1..=UNKNOWN_MACHINES_MAX)?;
    check_number(labels, label::SEGMENT_MTU, 1280..=9216)?;
    check_word(labels, label::REQUIRE_BMC_NONCE, ["true", "false"])?;
    check_word(labels, label::FABRIC, ["static", "evpn"])?;
    let is_good = |text: &String| {
        let count = text.parse();
        count.is_ok_and(|count| (1..=UPLINKS_MAX).contains(&count))
    };
    if !labels.get(label::UPLINKS).is_none_or(is_good) {
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

/// Refuses a reserved label without a meaning on partitions.
fn check_reserved(labels: &Labels) -> CheckResult {
    let is_unknown = |key: &&String| {
        key.starts_with(label::RESERVED_PREFIX) && !label::OF_A_PARTITION.contains(&key.as_str())
    };
    let Some(unknown) = labels.keys().find(is_unknown) else {
        return Ok(());
    };
    let known = label::OF_A_PARTITION.join(", ");
    let rule = format!("{unknown:?} is not a label of a partition; known are {known}");
    Err(Error::invalid("labels", rule))
}

/// Checks a label that holds a number in a range.
fn check_number(labels: &Labels, label: &str, range: RangeInclusive<u32>) -> CheckResult {
    let is_good = |text: &String| text.parse().is_ok_and(|number| range.contains(&number));
    if labels.get(label).is_none_or(is_good) {
        return Ok(());
    }
    let rule = format!("must be a number in {}..={}", range.start(), range.end());
    Err(Error::invalid(label, rule))
}

/// Takes the number of the provisioning segment. No network may have it, no port may be in its
/// segment, and it must not cool down: machines of a tenant would share a segment with machines
/// that boot.
fn take_provisioning_vni(tx: &mut Tx<'_>, partition: &Partition) -> Result<(), Error> {
    let vni = partition.provisioning_vni().get();
    let refuse = |rule: String| Err(Error::invalid(label::PROVISIONING_VNI, rule));
    if tx.tables().index().vrf_networks.contains_key(&vni) {
        return refuse(format!("{vni} is the VRF of a network: choose another"));
    }
    // Several partitions may boot their machines in segments of the same number.
    if pool::is_vrf_used(tx.tables(), vni) {
        return Ok(());
    }
    if let Some(port) = pool::observed_port(tx.tables(), vni, tx.now) {
        return refuse(format!(
            "{vni} is the segment of switch port {port} still: choose another"
        ));
    }
    pool::take(tx, &PoolNumber::Vrf(vni), None)
}

/// Checks a label that holds one of two words.
fn check_word(labels: &Labels, label: &str, words: [&str; 2]) -> CheckResult {
    let text = labels.get(label).map(String::as_str);
    if text.is_none_or(|text| words.contains(&text)) {
        return Ok(());
    }
    let [first, second] = words;
    let rule = format!("must be \"{first}\" or \"{second}\"");
    Err(Error::invalid(label, rule))
}

pub(crate) fn create_partition(tx: &mut Tx<'_>, op: &CreatePartition) -> ApplyResult {
    check_partition(tx, &op.0)?;
    tx.create(op.0.clone()).map(Reply::Partition)
}

pub(crate) fn update_partition(tx: &mut Tx<'_>, op: &UpdatePartition) -> ApplyResult {
    let mut partition: Partition = tx.require(&op.id)?;
    let before = partition.provisioning_vni().get();
    let had_evpn = partition.has_evpn();
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
    if partition.has_evpn() != had_evpn {
        check_unused(tx, &partition)?;
    }
    let partition = tx.update(partition);
    if !pool::is_vrf_used(tx.tables(), before) {
        pool::release(tx, PoolNumber::Vrf(before), None, Some(&op.id));
    }
    Ok(Reply::Partition(partition))
}

/// Refuses another fabric while machines are allocated: their ports would go from segments to VRFs
/// or back, and their systems were installed for the other.
fn check_unused(tx: &Tx<'_>, partition: &Partition) -> CheckResult {
    let Some(machine) = references::allocated_machine(tx.tables(), &partition.id) else {
        return Ok(());
    };
    let (before, after) = match partition.has_evpn() {
        true => ("static", "evpn"),
        false => ("evpn", "static"),
    };
    let rule = format!(
        "label {} of partition \"{}\" stays \"{before}\" and does not become \"{after}\" while \
         machine \"{machine}\" is allocated: its system was installed for the other network",
        label::FABRIC,
        partition.id
    );
    let error = Error::new(ErrorCode::StillInUse, rule).object("partition", &partition.id);
    Err(error.hint(
        "release the machines of the partition first: metalmesh machine ls; or make another \
         partition for the other fabric",
    ))
}

pub(crate) fn delete_partition(tx: &mut Tx<'_>, op: &DeletePartition) -> ApplyResult {
    let partition = tx.tables().require::<Partition>(&op.0)?.clone();
    if let Some((kind, by)) = references::holder_of_partition(tx.tables(), &op.0) {
        return Err(in_use("partition", op.0.as_str(), kind, &by));
    }
    tx.delete::<Partition>(&op.0);
    Ok(Reply::Partition(partition))
}
