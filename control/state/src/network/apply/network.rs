//! Creation of networks by administrators; updates and deletion of all networks.

use proto_errors::{Error, ErrorCode};
use proto_types::{PartitionId, ProjectId};

use crate::catalog::entity::Partition;
use crate::fields::{check_description, check_name, in_use};
use crate::firewall::apply::rules::forget_network;
use crate::meta::Meta;
use crate::network::apply::child_network::{Child, create_child};
use crate::network::apply::network_rules::{check_fields, check_new_prefixes};
use crate::network::apply::pool;
use crate::network::command::{CreateNetwork, DeleteNetwork, UpdateNetwork};
use crate::network::entity::{Network, NetworkType, PoolNumber, VRF_MAX};
use crate::references;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};
use crate::tenancy::entity::Project;

pub(crate) fn create(tx: &mut Tx<'_>, op: &CreateNetwork) -> ApplyResult {
    // Before all other checks: a caller that applies a list of networks skips existing ones by this
    // error, and would otherwise get the first rule that the repetition breaks.
    if tx.tables().get::<Network>(&op.id).is_some() {
        return Err(Error::already_exists("network", &op.id));
    }
    check_names(op.name.as_deref(), op.description.as_deref())?;
    check_fields(op)?;
    if let Some(partition) = &op.partition {
        tx.tables().require::<Partition>(partition)?;
    }
    if let Some(project) = &op.project {
        tx.tables().require::<Project>(project)?;
    }
    if op.kind.is_child() {
        return create_child(tx, &Child::from_admin(op)?);
    }
    check_new_prefixes(tx.tables(), &op.id, op.kind, &op.prefixes)?;
    if op.kind == NetworkType::Super {
        check_only_super(tx.tables(), op.partition.as_ref())?;
    }
    if let Some(vrf) = op.vrf {
        take_vrf(tx, vrf, op.project)?;
    }
    let network = Network {
        id: op.id.clone(),
        meta: Meta::labelled(op.labels.clone()),
        kind: op.kind,
        name: op.name.clone(),
        description: op.description.clone(),
        partition: op.partition.clone(),
        project: op.project,
        namespace: None,
        prefixes: op.prefixes.clone(),
        destination_prefixes: op.destination_prefixes.clone(),
        default_child_length: op.default_child_length,
        min_child_length: op.min_child_length,
        nat: op.nat.unwrap_or_default(),
        vrf: op.vrf,
        parent: None,
        additional_announcable_cidrs: op.additional_announcable_cidrs.clone(),
    };
    tx.create(network).map(Reply::Network)
}

pub(crate) fn check_names(name: Option<&str>, description: Option<&str>) -> CheckResult {
    name.map_or(Ok(()), check_name)?;
    check_description(description.unwrap_or_default())
}

fn check_only_super(tables: &Tables, partition: Option<&PartitionId>) -> CheckResult {
    match partition.and_then(|partition| super_of(tables, partition)) {
        None => Ok(()),
        Some(other) => Err(Error::invalid(
            "partition",
            format!("has super network \"{}\" already", other.id),
        )
        .object("network", &other.id)),
    }
}

pub(crate) fn super_of<'a>(tables: &'a Tables, partition: &PartitionId) -> Option<&'a Network> {
    tables
        .all::<Network>()
        .find(|n| n.kind == NetworkType::Super && n.partition.as_ref() == Some(partition))
        .map(AsRef::as_ref)
}

fn take_vrf(tx: &mut Tx<'_>, vrf: u32, project: Option<ProjectId>) -> Result<(), Error> {
    if !(1..=VRF_MAX).contains(&vrf) {
        return Err(Error::invalid("vrf", format!("must be in 1..={VRF_MAX}")));
    }
    if pool::is_vrf_used(tx.tables(), vrf) {
        return Err(Error::already_exists("vrf", vrf));
    }
    if let Some(port) = pool::observed_port(tx.tables(), vrf, tx.now) {
        return Err(still_observed("vrf", &vrf.to_string(), &port));
    }
    pool::take(tx, &PoolNumber::Vrf(vrf), project)
}

/// The error for a VRF id that cannot change its owner, because a switch reports a port in its
/// segment: the new owner's machines would share it with that port.
fn still_observed(kind: &str, key: &str, port: &str) -> Error {
    in_use(kind, key, "switch port", port).hint(
        "wait until the switch reports that it moved the port, for a day at most: `metalmesh \
         switch show SWITCH`; delete a switch that is gone: `metalmesh switch delete SWITCH`",
    )
}

pub(crate) fn update(tx: &mut Tx<'_>, op: &UpdateNetwork) -> ApplyResult {
    let mut network: Network = tx.require(&op.id)?;
    check_owner(&network, op.project)?;
    check_tenants_fields(op)?;
    op.lock.check("network", op.id.as_str(), &network.meta)?;
    check_names(op.name.as_deref(), op.description.as_deref())?;
    crate::network::apply::update_rules::check_update(tx.tables(), &network, op)?;
    network.name = op.name.clone().or(network.name);
    network.description = op.description.clone().or(network.description);
    if let Some(labels) = &op.labels {
        labels.apply(&mut network.meta.labels)?;
    }
    crate::fields::set(&mut network.prefixes, op.prefixes.as_ref());
    crate::fields::set(
        &mut network.destination_prefixes,
        op.destination_prefixes.as_ref(),
    );
    crate::fields::set(
        &mut network.default_child_length,
        op.default_child_length.as_ref(),
    );
    crate::fields::set(&mut network.min_child_length, op.min_child_length.as_ref());
    crate::fields::set(&mut network.nat, op.nat.as_ref());
    crate::fields::set(
        &mut network.additional_announcable_cidrs,
        op.additional_announcable_cidrs.as_ref(),
    );
    Ok(Reply::Network(tx.update(network)))
}

/// Refuses fields that only administrators change. The contract has none of them in a tenant's
/// request; this is the second line.
fn check_tenants_fields(op: &UpdateNetwork) -> CheckResult {
    let is_admins = op.prefixes.is_some()
        || op.destination_prefixes.is_some()
        || op.default_child_length.is_some()
        || op.min_child_length.is_some()
        || op.nat.is_some()
        || op.additional_announcable_cidrs.is_some();
    if op.project.is_none() || !is_admins {
        return Ok(());
    }
    let rule = "a project changes only name, description and labels of a network";
    Err(Error::new(ErrorCode::PermissionDenied, rule).object("network", &op.id))
}

/// Reports a network of another project as not found.
fn check_owner(network: &Network, project: Option<ProjectId>) -> CheckResult {
    if project.is_some() && network.project != project {
        return Err(Error::not_found("network", &network.id));
    }
    Ok(())
}

pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteNetwork) -> ApplyResult {
    let network = tx.tables().require::<Network>(&op.id)?.clone();
    check_owner(&network, op.project)?;
    let tables = tx.tables();
    if let Some((kind, by)) = references::holder_of_network(tables, &op.id) {
        return Err(in_use("network", op.id.as_str(), kind, &by));
    }
    // Only the last network of a VRF id releases it: until then the ports may stay in the segment.
    let is_last = |vrf: &u32| tables.index().vrf_networks.get(vrf) == Some(&1);
    let port = network
        .vrf
        .filter(is_last)
        .and_then(|vrf| pool::observed_port(tables, vrf, tx.now));
    if let Some(port) = port {
        return Err(still_observed("network", op.id.as_str(), &port));
    }
    forget_network(tx, &op.id);
    tx.delete::<Network>(&op.id);
    pool::release_network(tx, &network);
    Ok(Reply::Network(network))
}
