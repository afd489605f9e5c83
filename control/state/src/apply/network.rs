//! Networks: by admins of any type, by users as children.

use proto_errors::{Error, ErrorCode};
use proto_types::{NetworkId, PartitionId, ProjectId, VNI_MAX};

use crate::apply::network;
use crate::apply::network_rules::{check_fields, check_new_prefixes};
use crate::apply::pool::{self, Wanted};
use crate::catalog::entity::Partition;
use crate::command::{CreateChildNetwork, CreateNetwork, DeleteNetwork, UpdateNetwork};
use crate::entities::{
    ChildLength, Family, IpKey, Machine, Network, NetworkFamily, NetworkType, PoolNumber,
};
use crate::fields::{check_description, check_name, in_use};
use crate::meta::Meta;
use crate::reply::Reply;
use crate::tables::{Tables, Tx};
use crate::tenancy::apply::quota::within;
use crate::tenancy::entity::Project;

type Result = std::result::Result<Reply, Error>;
type Check = std::result::Result<(), Error>;

pub(crate) fn create(tx: &mut Tx<'_>, op: &CreateNetwork) -> Result {
    // Before anything else: who applies a list of networks skips those that are there by this.
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

pub(crate) fn create_by_user(tx: &mut Tx<'_>, op: &CreateChildNetwork) -> Result {
    check_names(op.name.as_deref(), op.description.as_deref())?;
    tx.tables().require::<Project>(&op.project)?;
    create_child(tx, &Child::from_user(op))
}

fn check_names(name: Option<&str>, description: Option<&str>) -> Check {
    name.map_or(Ok(()), check_name)?;
    check_description(description.unwrap_or_default())
}

fn check_only_super(tables: &Tables, partition: Option<&PartitionId>) -> Check {
    match partition.and_then(|partition| super_of(tables, partition)) {
        None => Ok(()),
        Some(other) => Err(Error::invalid(
            "partition",
            format!("has super network \"{}\" already", other.id),
        )
        .object("network", &other.id)),
    }
}

fn super_of<'a>(tables: &'a Tables, partition: &PartitionId) -> Option<&'a Network> {
    tables
        .all::<Network>()
        .find(|n| n.kind == NetworkType::Super && n.partition.as_ref() == Some(partition))
        .map(AsRef::as_ref)
}

fn take_vrf(tx: &mut Tx<'_>, vrf: u32, project: Option<ProjectId>) -> Check {
    if !(1..=VNI_MAX).contains(&vrf) {
        return Err(Error::invalid("vrf", "must be in 1..=16777215"));
    }
    if pool::is_vrf_used(tx.tables(), vrf) {
        return Err(Error::already_exists("vrf", vrf));
    }
    if let Some(port) = pool::observed_port(tx.tables(), vrf) {
        return Err(still_observed("vrf", &vrf.to_string(), &port));
    }
    pool::take(tx, &PoolNumber::Vrf(vrf), project)
}

/// A segment whose number cannot change hands: a switch reports a port in it.
fn still_observed(kind: &str, key: &str, port: &str) -> Error {
    in_use(kind, key, "switch port", port)
        .hint("wait until the switch reports that it moved the port: metalmesh switch show")
}

/// A child network to make.
struct Child {
    id: NetworkId,
    kind: NetworkType,
    meta: Meta,
    name: Option<String>,
    description: Option<String>,
    project: ProjectId,
    partition: Option<PartitionId>,
    parent: Option<NetworkId>,
    length: ChildLength,
    family: Option<NetworkFamily>,
}

impl Child {
    fn from_admin(op: &CreateNetwork) -> std::result::Result<Self, Error> {
        let project = op.project.ok_or_else(|| {
            Error::new(
                ErrorCode::NetworkFieldMissing,
                "project is missing for a child network",
            )
        })?;
        Ok(Self {
            id: op.id.clone(),
            kind: op.kind,
            meta: Meta::labelled(op.labels.clone()),
            name: op.name.clone(),
            description: op.description.clone(),
            project,
            partition: op.partition.clone(),
            parent: op.parent.clone(),
            length: op.length,
            family: op.family,
        })
    }

    fn from_user(op: &CreateChildNetwork) -> Self {
        Self {
            id: op.id.clone(),
            kind: NetworkType::Child,
            meta: Meta::labelled(op.labels.clone()),
            name: op.name.clone(),
            description: op.description.clone(),
            project: op.project,
            partition: op.partition.clone(),
            parent: op.parent.clone(),
            length: op.length,
            family: op.family,
        }
    }
}

fn create_child(tx: &mut Tx<'_>, child: &Child) -> Result {
    let parent = parent_of(tx.tables(), child)?.clone();
    if child.kind == NetworkType::ChildShared {
        check_only_shared(tx.tables(), child.project)?;
    }
    let namespace = (parent.kind == NetworkType::SuperNamespaced).then_some(child.project);
    let mut prefixes = Vec::new();
    for family in families(&parent, child)? {
        let wanted = Wanted {
            parent: &parent,
            family,
            length: length_of(&parent, child, family)?,
            namespace,
            project: child.project,
        };
        prefixes.push(pool::next_prefix(tx, &wanted)?);
    }
    let vrf = match parent.vrf {
        Some(vrf) => vrf,
        None => pool::next_vrf(tx, child.project)?,
    };
    let network = Network {
        id: child.id.clone(),
        meta: child.meta.clone(),
        kind: child.kind,
        name: child.name.clone(),
        description: child.description.clone(),
        partition: parent.partition.clone(),
        project: Some(child.project),
        namespace,
        prefixes,
        destination_prefixes: parent.destination_prefixes.clone(),
        default_child_length: ChildLength::default(),
        min_child_length: ChildLength::default(),
        nat: parent.nat,
        vrf: Some(vrf),
        parent: Some(parent.id.clone()),
        additional_announcable_cidrs: Vec::new(),
    };
    tx.create(network).map(Reply::Network)
}

fn parent_of<'a>(tables: &'a Tables, child: &Child) -> std::result::Result<&'a Network, Error> {
    match (&child.partition, &child.parent) {
        (Some(partition), None) => {
            tables.require::<Partition>(partition)?;
            let of_all = |network: &&Network| network.project.is_none();
            super_of(tables, partition).filter(of_all).ok_or_else(|| {
                Error::new(
                    ErrorCode::NoSuperNetwork,
                    format!("partition \"{partition}\" has no super network"),
                )
                .object("partition", partition)
            })
        }
        (None, Some(parent)) => {
            let network = tables.require::<Network>(parent)?;
            let foreign = network
                .project
                .is_some_and(|project| project != child.project);
            if foreign {
                return Err(Error::not_found("network", parent));
            }
            if !network.kind.is_super() {
                return Err(Error::new(
                    ErrorCode::NetworkNotAllowed,
                    format!("network \"{parent}\" is not a super network"),
                )
                .object("network", parent));
            }
            Ok(network)
        }
        _ => Err(Error::invalid(
            "partition",
            "or parent_network must be given, and not both",
        )),
    }
}

fn check_only_shared(tables: &Tables, project: ProjectId) -> Check {
    let other = tables
        .all::<Network>()
        .find(|n| n.kind == NetworkType::ChildShared && n.project == Some(project));
    other.map_or(Ok(()), |other| {
        Err(Error::new(
            ErrorCode::AlreadyExists,
            format!("project has shared network \"{}\" already", other.id),
        )
        .object("network", &other.id))
    })
}

fn families(parent: &Network, child: &Child) -> std::result::Result<Vec<Family>, Error> {
    let wanted = match child.family {
        None => parent.families().collect(),
        Some(NetworkFamily::V4) => vec![Family::V4],
        Some(NetworkFamily::V6) => vec![Family::V6],
        Some(NetworkFamily::Dual) => vec![Family::V4, Family::V6],
    };
    match wanted.iter().find(|family| !parent.has_family(**family)) {
        None => Ok(wanted),
        Some(family) => Err(Error::invalid(
            "address_family",
            format!("{family:?} is not what network \"{}\" has", parent.id),
        )),
    }
}

/// Length of a child's prefix.
fn length_of(parent: &Network, child: &Child, family: Family) -> std::result::Result<u8, Error> {
    let length = child
        .length
        .get(family)
        .or_else(|| parent.default_child_length.get(family));
    let length = length.ok_or_else(|| {
        Error::new(
            ErrorCode::NetworkFieldMissing,
            "length is missing: the parent has no default",
        )
    })?;
    let own = parent.prefixes.iter();
    let own = own.filter(|net| Family::of_net(net) == family);
    let longer = own.map(|net| net.prefix_len() + 1).max().unwrap_or(0);
    let shortest = parent.min_child_length.get(family).unwrap_or(0).max(longer);
    let longest = if family == Family::V4 { 32 } else { 128 };
    if !(shortest..=longest).contains(&length) {
        let rule = format!(
            "must be in {shortest}..={longest} for network \"{}\"",
            parent.id
        );
        return Err(Error::invalid("length", rule));
    }
    Ok(length)
}

pub(crate) fn update(tx: &mut Tx<'_>, op: &UpdateNetwork) -> Result {
    let mut network: Network = tx.require(&op.id)?;
    check_owner(&network, op.project)?;
    op.lock.check("network", op.id.as_str(), &network.meta)?;
    check_names(op.name.as_deref(), op.description.as_deref())?;
    super::network_rules::check_update(tx.tables(), &network, op)?;
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

/// Somebody else's network is as good as none.
fn check_owner(network: &Network, project: Option<ProjectId>) -> Check {
    if project.is_some() && network.project != project {
        return Err(Error::not_found("network", &network.id));
    }
    Ok(())
}

pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteNetwork) -> Result {
    let network = tx.tables().require::<Network>(&op.id)?.clone();
    check_owner(&network, op.project)?;
    let tables = tx.tables();
    let child = tables
        .index()
        .children
        .get(&op.id)
        .and_then(|set| set.first());
    let machine = tables.all::<Machine>().find(|m| {
        m.allocation
            .as_ref()
            .is_some_and(|a| a.networks.iter().any(|n| n.network == op.id))
    });
    let ip = tables
        .index()
        .network_ips
        .get(&op.id)
        .and_then(|set| set.first());
    let holds = child
        .map(|it| ("network", it.to_string()))
        .or_else(|| machine.map(|it| ("machine", it.id.to_string())))
        .or_else(|| ip.map(|it: &IpKey| ("ip", it.ip.to_string())));
    if let Some((kind, by)) = holds {
        return Err(in_use("network", op.id.as_str(), kind, &by));
    }
    let is_last = |vrf: &u32| tables.index().vrf_networks.get(vrf) == Some(&1);
    let port = network
        .vrf
        .filter(is_last)
        .and_then(|vrf| pool::observed_port(tables, vrf));
    if let Some(port) = port {
        return Err(still_observed("network", op.id.as_str(), &port));
    }
    tx.delete::<Network>(&op.id);
    pool::release_network(tx, &network);
    Ok(Reply::Network(network))
}

pub(crate) fn create_child_network(tx: &mut Tx<'_>, op: &CreateChildNetwork) -> Result {
    within(tx, op.project, |tx| network::create_by_user(tx, op))
}
