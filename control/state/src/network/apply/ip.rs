//! Addresses.

use std::net::IpAddr;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{ClaimId, IpId, MachineId, ProjectId};

use crate::fields::{check_description, check_name};
use crate::meta::{Meta, label};
use crate::network::apply::{next_address, pool};
use crate::network::command::{CreateIp, DeleteIp, UpdateIp};
use crate::network::entity::{Family, Ip, IpKey, IpType, Network, NetworkType, PoolNumber};
use crate::network::ipam;
use crate::references;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};
use crate::tenancy::apply::quota::within;
use crate::tenancy::entity::Project;

pub(crate) fn create(tx: &mut Tx<'_>, op: &CreateIp) -> ApplyResult {
    if !op.name.is_empty() {
        check_name(&op.name)?;
    }
    check_description(&op.description)?;
    tx.tables().require::<Project>(&op.project)?;
    let network = usable_network(tx.tables(), op)?.clone();
    let ip = match (op.ip, op.family) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid(
                "address_family",
                "and ip exclude each other",
            ));
        }
        (Some(ip), None) => take_given(tx, &network, ip, op.project)?,
        (None, family) => {
            let family = family_of(&network, family)?;
            next_address::next_ip(tx, &network, family, op.project)?
        }
    };
    let mut meta = Meta::labelled(op.labels.clone());
    meta.labels.remove(label::MACHINE_ID);
    if let Some(machine) = &op.machine {
        references::check_machine(tx.tables(), machine, op.project)?;
        meta.labels
            .insert(label::MACHINE_ID.into(), machine.to_string());
    }
    tx.create(Ip {
        id: op.id,
        meta,
        ip,
        namespace: network.namespace,
        name: op.name.clone(),
        description: op.description.clone(),
        network: network.id.clone(),
        project: op.project,
        kind: op.kind,
        machine: op.machine,
        claim: None,
    })
    .map(Reply::Ip)
}

/// The network of a new address, if the project may have addresses of it.
fn usable_network<'a>(tables: &'a Tables, op: &CreateIp) -> Result<&'a Network, Error> {
    let id = &op.network;
    let network = tables.require::<Network>(id)?;
    let theirs = network.project.is_none_or(|owner| owner == op.project);
    // Not found instead of denied: callers cannot probe for networks of others.
    if !theirs && network.kind != NetworkType::ChildShared {
        return Err(Error::not_found("network", id));
    }
    if network.kind == NetworkType::Underlay && !op.underlay {
        return Err(Error::new(
            ErrorCode::PermissionDenied,
            format!("only administrators take addresses out of underlay network \"{id}\""),
        )
        .object("network", id));
    }
    if network.kind.is_super() {
        return Err(Error::new(
            ErrorCode::NetworkNotAllowed,
            format!("network \"{id}\" is for child networks, not for addresses"),
        )
        .object("network", id));
    }
    Ok(network)
}

/// The requested IP version, or the first one of the network.
fn family_of(network: &Network, asked: Option<Family>) -> Result<Family, Error> {
    match asked {
        Some(family) if !network.has_family(family) => Err(Error::invalid(
            "address_family",
            format!("{family:?} is not what network \"{}\" has", network.id),
        )),
        Some(family) => Ok(family),
        None => Ok(network.families().next().unwrap_or(Family::V4)),
    }
}

/// Takes an address by name. It must be free, and must not cool down for another project.
fn take_given(
    tx: &mut Tx<'_>,
    network: &Network,
    ip: IpAddr,
    project: ProjectId,
) -> Result<IpAddr, Error> {
    let inside = network
        .prefix_of(ip)
        .is_some_and(|net| ipam::is_usable(net, ip));
    if !inside {
        return Err(Error::new(
            ErrorCode::AddressNotInNetwork,
            format!(
                "address {ip} is not one for hosts of network \"{}\"",
                network.id
            ),
        )
        .object("network", &network.id));
    }
    let key = IpKey {
        namespace: network.namespace,
        ip,
    };
    if tx.get::<Ip>(&key).is_some() {
        let message = format!("address {ip} of network \"{}\" is taken", network.id);
        return Err(Error::new(ErrorCode::AddressTaken, message).object("ip", ip));
    }
    next_address::check_share(tx, network, ip, project)?;
    pool::take(tx, &PoolNumber::Ip(key), Some(project))?;
    Ok(ip)
}

/// Creates an ephemeral address for a machine, which is released with it.
pub(crate) fn create_for_machine(
    tx: &mut Tx<'_>,
    network: &Network,
    family: Family,
    project: ProjectId,
    machine: MachineId,
) -> Result<IpAddr, Error> {
    let ip = next_address::next_ip(tx, network, family, project)?;
    let id = IpId::new(tx.derive_uuid());
    let mut meta = Meta::default();
    meta.labels
        .insert(label::MACHINE_ID.into(), machine.to_string());
    tx.create(Ip {
        id,
        meta,
        ip,
        namespace: network.namespace,
        name: String::new(),
        description: "autoassigned".into(),
        network: network.id.clone(),
        project,
        kind: IpType::Ephemeral,
        machine: Some(machine),
        claim: None,
    })?;
    Ok(ip)
}

/// Binds an address of the project to a machine.
pub(crate) fn bind(
    tx: &mut Tx<'_>,
    network: &Network,
    ip: IpAddr,
    project: ProjectId,
    machine: MachineId,
) -> Result<(), Error> {
    let key = IpKey {
        namespace: network.namespace,
        ip,
    };
    let mut address = own(tx, &key, project)?;
    if address.network != network.id {
        let message = format!("address {ip} is not in network \"{}\"", network.id);
        return Err(Error::new(ErrorCode::AddressNotInNetwork, message).object("ip", ip));
    }
    if let Some(other) = address.user_text() {
        return Err(Error::new(
            ErrorCode::AddressInUse,
            format!("address {ip} belongs to {other}"),
        )
        .object("ip", ip));
    }
    address.machine = Some(machine);
    address.label_machine();
    tx.update(address);
    Ok(())
}

/// `true` if the address is in an underlay, which belongs to the administrators whatever project
/// the address is taken for.
fn is_in_underlay(tables: &Tables, ip: &Ip) -> bool {
    let network = tables.get::<Network>(&ip.network);
    network.is_some_and(|network| network.kind == NetworkType::Underlay)
}

/// Refuses to change an address of an underlay for others than administrators: a static one would
/// outlive its firewall, and few of them would exhaust the underlay.
fn check_underlay(tables: &Tables, ip: &Ip, is_admin: bool) -> CheckResult {
    if is_admin || !is_in_underlay(tables, ip) {
        return Ok(());
    }
    let message = format!(
        "only administrators change address {} of underlay network \"{}\"",
        ip.ip, ip.network
    );
    Err(Error::new(ErrorCode::PermissionDenied, message).object("ip", ip.ip))
}

/// Releases all addresses of a machine. Ephemeral ones and those of an underlay are deleted, static
/// ones stay with the project.
pub(crate) fn release_all(tx: &mut Tx<'_>, machine: MachineId) {
    let keys = tx
        .tables()
        .index()
        .machine_ips
        .get(&machine)
        .cloned()
        .unwrap_or_default();
    for key in keys {
        let Some(mut ip) = tx.get::<Ip>(&key).map(|ip| Ip::clone(ip)) else {
            continue;
        };
        let goes_with_machine = ip.kind == IpType::Ephemeral || is_in_underlay(tx.tables(), &ip);
        if goes_with_machine {
            remove(tx, &ip);
        } else {
            ip.machine = None;
            ip.claim = None;
            ip.label_machine();
            tx.update(ip);
        }
    }
}

/// Shows a claim as the user of a machine's addresses, in place of the machine.
pub(crate) fn show_claim(tx: &mut Tx<'_>, machine: MachineId, claim: ClaimId) {
    let keys = tx.tables().index().machine_ips.get(&machine);
    for key in keys.cloned().unwrap_or_default() {
        let Some(mut ip) = tx.get::<Ip>(&key).map(|ip| Ip::clone(ip)) else {
            continue;
        };
        ip.claim = Some(claim);
        ip.label_machine();
        tx.save(ip);
    }
}

fn own(tx: &Tx<'_>, key: &IpKey, project: ProjectId) -> Result<Ip, Error> {
    tx.get::<Ip>(key)
        .filter(|ip| ip.project == project)
        .map(|ip| Ip::clone(ip))
        .ok_or_else(|| Error::not_found("ip", key.ip))
}

pub(crate) fn update(tx: &mut Tx<'_>, op: &UpdateIp) -> ApplyResult {
    let before = own(tx, &op.key, op.project)?;
    let mut ip = before.clone();
    op.lock.check("ip", &op.key.to_string(), &ip.meta)?;
    if let Some(name) = &op.name {
        check_name(name)?;
        ip.name.clone_from(name);
    }
    if let Some(description) = &op.description {
        check_description(description)?;
        ip.description.clone_from(description);
    }
    match (ip.kind, op.kind) {
        (IpType::Static, Some(IpType::Ephemeral)) => {
            return Err(Error::invalid("type", "cannot go from static to ephemeral"));
        }
        (_, Some(kind)) => ip.kind = kind,
        (_, None) => {}
    }
    if let Some(labels) = &op.labels {
        labels.apply(&mut ip.meta.labels)?;
        // The label of the system follows the field: a user's value would bind the address to
        // another machine for readers of labels.
        ip.label_machine();
    }
    if ip != before {
        check_underlay(tx.tables(), &ip, op.underlay)?;
    }
    Ok(Reply::Ip(tx.update(ip)))
}

pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteIp) -> ApplyResult {
    let ip = own(tx, &op.key, op.project)?;
    check_underlay(tx.tables(), &ip, op.underlay)?;
    if let Some(user) = ip.user_text() {
        return Err(Error::new(
            ErrorCode::AddressInUse,
            format!("address {} belongs to {user}", ip.ip),
        )
        .object("ip", ip.ip)
        .hint("free the machine, or delete the claim, first"));
    }
    remove(tx, &ip)
        .map(Reply::Ip)
        .ok_or_else(|| Error::not_found("ip", op.key.ip))
}

/// Deletes an address and starts its cooldown.
fn remove(tx: &mut Tx<'_>, ip: &Ip) -> Option<Arc<Ip>> {
    let key = IpKey {
        namespace: ip.namespace,
        ip: ip.ip,
    };
    let network = tx.get::<Network>(&ip.network);
    let partition = network.and_then(|network| network.partition.clone());
    let number = PoolNumber::Ip(key);
    pool::release(tx, number, Some(ip.project), partition.as_ref());
    tx.delete::<Ip>(&key)
}

pub(crate) fn create_ip(tx: &mut Tx<'_>, op: &CreateIp) -> ApplyResult {
    within(tx, op.project, |tx| create(tx, op))
}
