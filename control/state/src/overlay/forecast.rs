//! The effects that a change would have on each switch.

use std::collections::BTreeSet;

use proto_errors::Error;
use proto_types::{MachineId, NetworkId, PartitionId, SwitchId, Timestamp};

use crate::catalog::entity::{Classification, Networking, Partition};
use crate::catalog::read::{default_layout, newest_image};
use crate::command::Command;
use crate::desired::{Fabric, SwitchDesired};
use crate::dispatch::apply;
use crate::machine::apply::allocate_networks::{check_networks, connect};
use crate::machine::apply::candidates::chosen;
use crate::machine::command::{AllocateMachine, WantedNetwork};
use crate::machine::entity::{
    Allocation, AllocationType, FirewallRules, Install, Machine, Segment,
};
use crate::meta::Labels;
use crate::network::apply::{ip, pool};
use crate::network::entity::Network;
use crate::op::Op;
use crate::overlay::outcome::{PlannedChange, changes};
use crate::switch::command::{DrainSwitch, SetSwitchPort};
use crate::tables::{Change, Tables, Tx};

/// A change that can be forecast.
#[derive(Debug, Clone, PartialEq)]
pub enum FabricChange {
    /// A machine gets into a child network, to its end: the tenant's system runs.
    Allocate {
        /// The machine.
        machine: MachineId,
        /// The child network.
        network: NetworkId,
        /// The image, or the beginning of its id. `None` means one without a network label.
        image: Option<String>,
    },
    /// A machine is released, to its end: it boots from the network again.
    Release(MachineId),
    /// A port is set up or down.
    Port(SetSwitchPort),
    /// A switch is drained or put into service.
    Drain(DrainSwitch),
}

/// The fields of the switches' desired state that a change would change. `tables` is a copy, which
/// the forecast uses up.
///
/// # Errors
/// Those of the change itself.
pub fn forecast(
    mut tables: Tables,
    change: &FabricChange,
    now: Timestamp,
) -> Result<Vec<PlannedChange>, Error> {
    let mut fabric = Fabric::of(&tables);
    let before = fabric.clone();
    let made = match change {
        FabricChange::Allocate {
            machine,
            network,
            image,
        } => {
            let mut tx = Tx::new(&mut tables, now, ACTOR);
            allocate(&mut tx, *machine, network, image.as_deref())?;
            tx.commit()
        }
        FabricChange::Release(machine) => {
            let mut tx = Tx::new(&mut tables, now, ACTOR);
            release(&mut tx, *machine)?;
            tx.commit()
        }
        FabricChange::Port(op) => applied(&mut tables, now, op.clone())?,
        FabricChange::Drain(op) => applied(&mut tables, now, op.clone())?,
    };
    let concerned: BTreeSet<SwitchId> = fabric.take(&tables, &made);
    let of = |fabric: &Fabric, id: &SwitchId| -> Option<SwitchDesired> { fabric.desired(id).ok() };
    let changed = concerned.iter().flat_map(|id| {
        let (old, new) = (of(&before, id), of(&fabric, id));
        changes(id, old.as_ref(), new.as_ref())
    });
    Ok(changed.collect())
}

/// The caller of commands that are only tried.
const ACTOR: &str = "forecast";

fn applied(tables: &mut Tables, now: Timestamp, op: impl Into<Op>) -> Result<Vec<Change>, Error> {
    let outcome = apply(tables, &Command::new(now, ACTOR, op));
    outcome.result.map(|_| outcome.changes)
}

/// The machine as it is when the tenant's system runs. Layout and image id are placeholders: no
/// switch depends on them.
fn allocate(
    tx: &mut Tx<'_>,
    id: MachineId,
    network: &NetworkId,
    image: Option<&str>,
) -> Result<(), Error> {
    let project = tx.tables().require::<Network>(network)?.project;
    let project = project.ok_or_else(|| Error::invalid("network", "must be one of a project"))?;
    let op = wanted(tx.now, project, id, network)?;
    let mut machine = chosen(tx.tables(), &op, id, None, tx.now)?;
    let Some(partition) = machine.partition.clone() else {
        return Err(Error::invalid("machine", "must be in a partition"));
    };
    let networks = check_networks(tx.tables(), &op)?;
    let asn = pool::next_asn(tx, project)?;
    let connected = connect(tx, &op, &networks, &partition, id, asn)?;
    let networking = networking(tx, &partition, image)?;
    machine.allocation = Some(Box::new(Allocation {
        id: op.id,
        created_at: tx.now,
        updated_at: Timestamp::ZERO,
        generation: 1,
        created_by: ACTOR.to_owned(),
        project,
        name: String::new(),
        description: String::new(),
        hostname: String::new(),
        kind: AllocationType::Machine,
        image: op.image,
        networking,
        layout: default_layout()?,
        networks: connected,
        asn,
        ssh_public_keys: Vec::new(),
        userdata: String::new(),
        labels: Labels::default(),
        placement_labels: Labels::default(),
        dns_servers: Vec::new(),
        ntp_servers: Vec::new(),
        firewall_rules: FirewallRules::default(),
        install: Install::default(),
        events_before: 0,
        closed_to_project: false,
        replaces: None,
        claim: None,
    }));
    machine.segment = Segment::Tenant;
    tx.save(machine);
    Ok(())
}

/// The network of the system, as [`AllocateMachine`] would store it.
fn networking(
    tx: &Tx<'_>,
    partition: &PartitionId,
    image: Option<&str>,
) -> Result<Networking, Error> {
    let supported = Some(Classification::Supported);
    let image = image.map(|id| newest_image(tx.tables(), id, supported, tx.now));
    let chosen = match image.transpose()? {
        Some(image) => Networking::of_image(&image.meta.labels)?,
        None => Networking::Static,
    };
    Ok(chosen.in_partition(tx.tables().require::<Partition>(partition)?))
}

fn wanted(
    now: Timestamp,
    project: proto_types::ProjectId,
    machine: MachineId,
    network: &NetworkId,
) -> Result<AllocateMachine, Error> {
    let image = "forecast-0.0.0".parse();
    let image = image.map_err(|_| Error::invalid("image", "must be an id"))?;
    let network = WantedNetwork {
        network: network.clone(),
        ips: Vec::new(),
    };
    Ok(AllocateMachine {
        id: uuid::Uuid::from_u128(u128::from(now.ms())).into(),
        project,
        machine: Some(machine),
        name: String::new(),
        description: String::new(),
        hostname: None,
        partition: None,
        size: None,
        image,
        layout: None,
        ssh_public_keys: Vec::new(),
        userdata: String::new(),
        labels: Labels::default(),
        networks: vec![network],
        placement_labels: Labels::default(),
        dns_servers: Vec::new(),
        ntp_servers: Vec::new(),
        kind: AllocationType::Machine,
        firewall_rules: FirewallRules::default(),
        vpn: None,
        seed: 0,
        idempotency: None,
    })
}

/// The machine as it is after its reclaim: no tenant, and its own addresses are given back.
fn release(tx: &mut Tx<'_>, id: MachineId) -> Result<(), Error> {
    let mut machine: Machine = tx.require(&id)?;
    if machine.allocation.take().is_none() {
        let what = format!("machine \"{id}\" is not allocated");
        let error = Error::new(proto_errors::ErrorCode::MachineNotAllocated, what);
        return Err(error.object("machine", id));
    }
    machine.segment = Segment::Provisioning;
    tx.save(machine);
    ip::release_all(tx, id);
    Ok(())
}
