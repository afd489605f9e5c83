//! Networks and addresses of an allocation.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{Asn, MachineId, PartitionId};

use crate::machine::command::AllocateMachine;
use crate::machine::entity::{AllocationNetwork, AllocationType};
use crate::network::apply::ip;
use crate::network::entity::{Family, Network, NetworkType};
use crate::reply::CheckResult;
use crate::tables::{Tables, Tx};

/// Most networks per machine; a request with more is refused.
const NETWORKS_MAX: usize = 32;

fn not_allowed(network: &Network, why: &str) -> Error {
    Error::new(
        ErrorCode::NetworkNotAllowed,
        format!("network \"{}\" {why}", network.id),
    )
    .object("network", &network.id)
}

/// The networks of the request, if the project may use them for this kind of machine.
pub(crate) fn check_networks(
    tables: &Tables,
    op: &AllocateMachine,
) -> Result<Vec<Arc<Network>>, Error> {
    if op.networks.is_empty() || op.networks.len() > NETWORKS_MAX {
        return Err(Error::invalid(
            "networks",
            "must be at least one and at most 32",
        ));
    }
    let distinct: BTreeSet<_> = op.networks.iter().map(|wanted| &wanted.network).collect();
    if distinct.len() != op.networks.len() {
        return Err(Error::invalid("networks", "must not name a network twice"));
    }
    let mut networks = Vec::new();
    for wanted in &op.networks {
        let network = tables.require::<Network>(&wanted.network)?;
        let theirs = network.project.is_none_or(|owner| owner == op.project);
        // Not found, and not forbidden: a project must not learn which networks others have.
        if !theirs && network.kind != NetworkType::ChildShared {
            return Err(Error::not_found("network", &wanted.network));
        }
        if let Some(partition) = &op.partition {
            check_partition(network, partition)?;
        }
        match network.kind {
            NetworkType::Underlay => {
                return Err(not_allowed(
                    network,
                    "is an underlay: firewalls get it by themselves",
                ));
            }
            NetworkType::Super | NetworkType::SuperNamespaced => {
                return Err(not_allowed(
                    network,
                    "is for child networks, not for machines",
                ));
            }
            _ => networks.push(Arc::clone(network)),
        }
    }
    check_mix(op.kind, &networks)?;
    Ok(networks)
}

fn check_partition(network: &Network, partition: &PartitionId) -> CheckResult {
    let elsewhere = network.partition.as_ref().filter(|its| *its != partition);
    elsewhere.map_or(Ok(()), |_| {
        let why = format!("is not in partition \"{partition}\"");
        Err(not_allowed(network, &why))
    })
}

/// Refuses sets of networks that cannot be routed.
fn check_mix(kind: AllocationType, networks: &[Arc<Network>]) -> CheckResult {
    let count = |kind: NetworkType| networks.iter().filter(|n| n.kind == kind).count();
    let shared = count(NetworkType::ChildShared);
    // The child network is the segment of the machine's ports (`tenant_vrf`): with none or two
    // there would be no one answer.
    let children = count(NetworkType::Child) + shared;
    let rule = match kind {
        AllocationType::Machine if children != 1 => {
            Some("a machine needs exactly one child network")
        }
        AllocationType::Firewall if children == 0 => {
            Some("a firewall needs at least one child network")
        }
        AllocationType::Firewall if count(NetworkType::External) == 0 => {
            Some("a firewall needs at least one external network")
        }
        AllocationType::Firewall if shared > 1 => {
            Some("a firewall can have only one shared child network")
        }
        _ => None,
    };
    rule.map_or(Ok(()), |rule| {
        Err(Error::new(
            ErrorCode::NetworkNotAllowed,
            format!("networks do not fit: {rule}"),
        ))
    })
}

/// Binds addresses of every network to the machine.
pub(crate) fn connect(
    tx: &mut Tx<'_>,
    op: &AllocateMachine,
    networks: &[Arc<Network>],
    partition: &PartitionId,
    machine: MachineId,
    asn: Asn,
) -> Result<Vec<AllocationNetwork>, Error> {
    let mut connected = Vec::new();
    for (network, wanted) in networks.iter().zip(&op.networks) {
        // A request by machine id names no partition: it is known only now.
        check_partition(network, partition)?;
        let ips = addresses(tx, op, network, &wanted.ips, machine)?;
        connected.push(describe(network, ips, asn));
    }
    if op.kind == AllocationType::Firewall {
        let underlay = underlay_of(tx.tables(), partition)?;
        let ip = ip::create_for_machine(tx, &underlay, Family::V4, op.project, machine)?;
        connected.push(describe(&underlay, vec![ip], asn));
    }
    Ok(connected)
}

/// Binds the given addresses, or creates one of each family.
fn addresses(
    tx: &mut Tx<'_>,
    op: &AllocateMachine,
    network: &Network,
    given: &[IpAddr],
    machine: MachineId,
) -> Result<Vec<IpAddr>, Error> {
    if given.is_empty() {
        let families: Vec<_> = network.families().collect();
        let mut create = |family| ip::create_for_machine(tx, network, family, op.project, machine);
        return families.into_iter().map(&mut create).collect();
    }
    for ip in given {
        ip::bind(tx, network, *ip, op.project, machine).map_err(of_request)?;
    }
    Ok(given.to_vec())
}

/// Turns `AddressInUse` into `InvalidField`: the request named the address itself, so that a retry
/// cannot help.
fn of_request(error: Error) -> Error {
    match error.code {
        ErrorCode::AddressInUse => Error {
            message: error.message,
            object: error.object,
            ..Error::new(ErrorCode::InvalidField, String::new())
        },
        _ => error,
    }
}

/// The one underlay of a partition.
fn underlay_of(tables: &Tables, partition: &PartitionId) -> Result<Arc<Network>, Error> {
    let mut underlays = tables.all::<Network>().filter(|network| {
        network.kind == NetworkType::Underlay && network.partition.as_ref() == Some(partition)
    });
    match (underlays.next(), underlays.next()) {
        (Some(only), None) => Ok(Arc::clone(only)),
        _ => {
            let message = format!("partition \"{partition}\" has no single underlay for firewalls");
            let error = Error::new(ErrorCode::NotFound, message).object("partition", partition);
            Err(error.hint("an admin creates it: metalmesh network create --type underlay"))
        }
    }
}

fn describe(network: &Network, ips: Vec<IpAddr>, asn: Asn) -> AllocationNetwork {
    AllocationNetwork {
        network: network.id.clone(),
        kind: network.kind,
        prefixes: network.prefixes.clone(),
        destination_prefixes: network.destination_prefixes.clone(),
        ips,
        namespace: network.namespace,
        nat: network.nat,
        vrf: network.vrf.unwrap_or_default(),
        asn,
        project: network.project,
    }
}
