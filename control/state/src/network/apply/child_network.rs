//! Child networks, which get their prefixes from a super network.

use ipnet::IpNet;
use proto_errors::{Error, ErrorCode};
use proto_types::{NetworkId, PartitionId, ProjectId};

use crate::catalog::entity::Partition;
use crate::levels::{SHARED_BOUNDS, feature_level};
use crate::meta::Meta;
use crate::network::apply::network::{check_names, super_of};
use crate::network::apply::next_address::{self, Wanted};
use crate::network::apply::pool;
use crate::network::command::{CreateChildNetwork, CreateNetwork};
use crate::network::entity::{ChildLength, Family, Network, NetworkFamily, NetworkType};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};
use crate::tenancy::apply::quota::{self, within};
use crate::tenancy::entity::Project;

/// Divisor of the addresses of a shared super network: at most this part of them, half, is in the
/// children that one project requests. A further child is refused.
const SHARE: u128 = 2;

pub(crate) fn create_by_user(tx: &mut Tx<'_>, op: &CreateChildNetwork) -> ApplyResult {
    check_names(op.name.as_deref(), op.description.as_deref())?;
    tx.tables().require::<Project>(&op.project)?;
    let child = Child::from_user(op);
    let parent = parent_of(tx.tables(), &child)?.clone();
    let made = create_child(tx, &child)?;
    check_share(tx.tables(), &parent, child.project)?;
    Ok(made)
}

/// The request for a child network, of a user or an administrator.
pub(crate) struct Child {
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
    /// `true` if an administrator requests it.
    by_admin: bool,
}

impl Child {
    pub(crate) fn from_admin(op: &CreateNetwork) -> Result<Self, Error> {
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
            by_admin: true,
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
            by_admin: false,
        }
    }
}

pub(crate) fn create_child(tx: &mut Tx<'_>, child: &Child) -> ApplyResult {
    let parent = parent_of(tx.tables(), child)?.clone();
    if child.kind == NetworkType::ChildShared {
        check_only_shared(tx.tables(), child.project)?;
    }
    // Children of a namespaced parent may have the same prefixes as those of other projects.
    let namespace = (parent.kind == NetworkType::SuperNamespaced).then_some(child.project);
    let mut prefixes = Vec::new();
    for family in families(&parent, child)? {
        let wanted = Wanted {
            parent: &parent,
            family,
            length: length_of(tx.tables(), &parent, child, family)?,
            namespace,
            project: child.project,
        };
        prefixes.push(next_address::next_prefix(tx, &wanted)?);
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

fn parent_of<'a>(tables: &'a Tables, child: &Child) -> Result<&'a Network, Error> {
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

fn check_only_shared(tables: &Tables, project: ProjectId) -> CheckResult {
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

fn families(parent: &Network, child: &Child) -> Result<Vec<Family>, Error> {
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

/// Prefix length of a child in one IP version: the requested one, or the parent's default.
fn length_of(
    tables: &Tables,
    parent: &Network,
    child: &Child,
    family: Family,
) -> Result<u8, Error> {
    let is_bound_level = feature_level(tables) >= SHARED_BOUNDS;
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
    // Without a minimum the contract names no bound: one call would take half of the addresses that
    // all projects share.
    let is_bound = !child.by_admin && is_bound_level && is_for_all(parent);
    let default = parent.default_child_length.get(family);
    let shortest = parent.min_child_length.get(family);
    let shortest = shortest.or_else(|| default.filter(|_| is_bound));
    let shortest = shortest.unwrap_or(0).max(longer);
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

/// `true` if the children of all projects share the addresses of a super network.
fn is_for_all(parent: &Network) -> bool {
    parent.project.is_none() && parent.kind != NetworkType::SuperNamespaced
}

pub(crate) fn create_child_network(tx: &mut Tx<'_>, op: &CreateChildNetwork) -> ApplyResult {
    within(tx, op.project, |tx| create_by_user(tx, op))
}

/// Refuses children that together have more than [`SHARE`] of the addresses of a shared super
/// network, unless a quota bounds the networks of the project. The tables already hold the new one.
fn check_share(tables: &Tables, parent: &Network, project: ProjectId) -> CheckResult {
    let is_bound = feature_level(tables) >= SHARED_BOUNDS && is_for_all(parent);
    if !is_bound || quota::bounds_networks(tables, project) {
        return Ok(());
    }
    let children = tables.index().children.get(&parent.id);
    let children = children.into_iter().flatten();
    let children = children.filter_map(|id| tables.get::<Network>(id));
    let own = children.filter(|child| child.project == Some(project));
    let own: Vec<IpNet> = own.flat_map(|child| child.prefixes.clone()).collect();
    let is_over = |family: &Family| {
        size_of(&own, *family) > size_of(&parent.prefixes, *family).div_euclid(SHARE)
    };
    let Some(family) = parent.families().find(is_over) else {
        return Ok(());
    };
    let rule = format!(
        "the networks of project \"{project}\" would have more than half of the {family:?} \
         addresses of network \"{}\", which all projects share",
        parent.id
    );
    let error = Error::new(ErrorCode::TooMany, rule).object("network", &parent.id);
    Err(error.hint(
        "request longer prefixes, or delete networks that nobody needs; an administrator sets a \
         quota instead of this bound: metalmesh quota set --of-project ID --networks N",
    ))
}

/// Number of addresses of the prefixes of one IP version, at most `u128::MAX`.
fn size_of(nets: &[IpNet], family: Family) -> u128 {
    let nets = nets.iter().filter(|net| Family::of_net(net) == family);
    let of_net = |net: &IpNet| {
        let bits = net.max_prefix_len() - net.prefix_len();
        1_u128.checked_shl(bits.into()).unwrap_or(u128::MAX)
    };
    nets.map(of_net).fold(0, u128::saturating_add)
}
