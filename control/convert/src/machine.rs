//! Machines for the wire, with the fields that published clients require.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_front::listing::EncodedItems;
use control_state::{self as state, Machine, Tables};
use proto_public::MachinePlace;
use proto_public::api::v2;
use proto_types::{ProjectId, SizeId, Timestamp};

use super::enums::liveliness;
use super::machine_bmc::led_state;
use super::machine_history::{Viewer, condition, events};
use super::{catalog, labels, lease, meta, time};

pub use super::machine_allocation::{allocation, from_firewall_rules};
pub use super::machine_bmc::{bmc_details, fru};

/// Label with the phase, for which the contract has no field.
pub const PHASE_LABEL: &str = "metalmesh.dev/phase";
/// Label with the time of the last change of the phase.
pub const SINCE_LABEL: &str = "metalmesh.dev/phase-since";
/// Label with the project that owns the machine.
pub const OWNER_LABEL: &str = "metalmesh.dev/owner";
/// Label with the project that leases it.
pub const LESSEE_LABEL: &str = "metalmesh.dev/lessee";
/// Label with the end of its lease.
pub const LEASE_END_LABEL: &str = "metalmesh.dev/lease-expires";
/// Label with the time of the warning that the end of its lease is near.
pub const LEASE_WARNED_LABEL: &str = "metalmesh.dev/lease-warned";
/// Label with its resource class.
pub const CLASS_LABEL: &str = "metalmesh.dev/resource-class";
/// Label with its traits, comma separated.
pub const TRAITS_LABEL: &str = "metalmesh.dev/traits";

/// A machine for the wire, with everything that published clients dereference.
pub fn machine(tables: &Tables, machine: &Machine, viewer: Viewer) -> v2::Machine {
    v2::Machine {
        partition: Some(partition(tables, machine)),
        size: Some(size(tables, machine)),
        ..without_place(tables, machine, viewer)
    }
}

/// Encodes many machines for the wire. Partitions and sizes are few, so each is encoded once. The other
/// parts come from many tables and are encoded while the tables are read.
pub fn machines<'a>(
    tables: &Tables,
    machines: impl Iterator<Item = &'a Arc<Machine>>,
    viewer: Viewer,
) -> EncodedItems {
    let (mut list, mut places) = (EncodedItems::default(), BTreeMap::new());
    for machine in machines {
        let place = places
            .entry((machine.partition.as_ref(), machine.size.as_ref()))
            .or_insert_with(|| {
                let partition = partition(tables, machine);
                MachinePlace::of(Some(partition), Some(size(tables, machine)))
            });
        let machine = without_place(tables, machine, viewer);
        list.push(|out| place.encode(machine, out));
    }
    list
}

fn without_place(tables: &Tables, machine: &Machine, viewer: Viewer) -> v2::Machine {
    v2::Machine {
        uuid: machine.id.to_string(),
        meta: machine_meta(machine),
        partition: None,
        rack: machine.rack.clone(),
        room: machine.room.clone(),
        size: None,
        hardware: Some(hardware(&machine.hardware)),
        allocation: machine
            .allocation
            .as_ref()
            .map(|allocated| allocation(tables, allocated, viewer)),
        status: Some(status(tables, machine, viewer)),
        recent_provisioning_events: Some(events(tables, machine, viewer)),
    }
}

fn machine_meta(machine: &Machine) -> Option<v2::Meta> {
    let mut meta = meta(&machine.meta)?;
    meta.labels = Some(labels(&shown_labels(machine)));
    if let (true, Some(allocation)) = (machine.is_leaving(), &machine.allocation) {
        meta.deletion_task_id = Some(deletion_task(allocation));
    }
    Some(meta)
}

/// The labels of a machine: its own, those of its tenant, and those with its state.
pub fn shown_labels(machine: &Machine) -> state::Labels {
    let mut shown = machine.meta.labels.clone();
    if let Some(allocation) = &machine.allocation {
        shown.extend(allocation.labels.clone());
        let asn = state::label::MACHINE_ASN.to_owned();
        shown.insert(asn, allocation.asn.to_string());
    }
    let own = [
        (state::label::MACHINE_RACK, machine.rack.clone()),
        (
            state::label::MACHINE_CHASSIS,
            machine.fru.chassis_part_serial.clone(),
        ),
        (PHASE_LABEL, machine.phase.to_string()),
        (
            SINCE_LABEL,
            time(machine.since)
                .map(|at| at.to_string())
                .unwrap_or_default(),
        ),
    ];
    for (key, value) in own.into_iter().filter(|(_, value)| !value.is_empty()) {
        shown.insert(key.to_owned(), value);
    }
    for (key, value) in tenure_labels(machine) {
        // An absent one is removed: a tenant's label must not look like an owner or a lease.
        match value.is_empty() {
            true => drop(shown.remove(key)),
            false => drop(shown.insert(key.to_owned(), value)),
        }
    }
    shown
}

/// The labels with owner, lease and capability, for which the contract has no fields. All are empty for
/// a machine that its last user is losing: whose it is next is not that user's to know.
fn tenure_labels(machine: &Machine) -> [(&'static str, String); 6] {
    let tenure = &machine.tenure;
    let user = machine.allocation.as_ref().map(|used| used.project);
    let is_foreign = user.is_some_and(|user| tenure.relation(user).is_none());
    if is_foreign && machine.is_leaving() {
        return [
            OWNER_LABEL,
            LESSEE_LABEL,
            LEASE_END_LABEL,
            LEASE_WARNED_LABEL,
            CLASS_LABEL,
            TRAITS_LABEL,
        ]
        .map(|key| (key, String::new()));
    }
    let text = |project: Option<ProjectId>| project.map(|id| id.to_string()).unwrap_or_default();
    let at = |at: Option<Timestamp>| at.map(lease::label_time).unwrap_or_default();
    let class = machine.capability.resource_class.as_ref();
    let traits = machine.capability.traits.iter().map(ToString::to_string);
    [
        (OWNER_LABEL, text(tenure.owner)),
        (LESSEE_LABEL, text(tenure.lessee)),
        (LEASE_END_LABEL, at(tenure.lease_expires_at)),
        (LEASE_WARNED_LABEL, at(tenure.lease_warned_at)),
        (
            CLASS_LABEL,
            class.map(ToString::to_string).unwrap_or_default(),
        ),
        (TRAITS_LABEL, traits.collect::<Vec<_>>().join(",")),
    ]
}

/// Name of the task that returns a machine to the pool.
pub fn deletion_task(allocation: &state::Allocation) -> String {
    format!("machine-delete-{}", allocation.id)
}

fn partition(tables: &Tables, machine: &Machine) -> v2::Partition {
    let id = machine.partition.as_ref();
    let found = id.and_then(|id| tables.get::<state::Partition>(id));
    found.map_or_else(
        || v2::Partition {
            id: id.map(ToString::to_string).unwrap_or_default(),
            meta: Some(v2::Meta::default()),
            ..Default::default()
        },
        |partition| catalog::partition(partition),
    )
}

/// The id of the size for clients: `unknown` for a machine without one.
pub(super) fn shown_size(id: Option<&SizeId>) -> String {
    id.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn size(tables: &Tables, machine: &Machine) -> v2::Size {
    let id = machine.size.as_ref();
    let found = id.and_then(|id| tables.get::<state::Size>(id));
    found.map_or_else(
        || v2::Size {
            id: shown_size(id),
            meta: Some(v2::Meta::default()),
            ..Default::default()
        },
        |size| catalog::size(size),
    )
}

#[expect(
    deprecated,
    reason = "published clients read the address from this field"
)]
fn nic(nic: &state::Nic) -> v2::MachineNic {
    let neighbour = |neighbour: &state::Neighbour| v2::MachineNic {
        mac: neighbour.chassis_id.clone(),
        name: neighbour.port_id.clone(),
        identifier: match neighbour.identifier.as_str() {
            "" => neighbour.port_id.clone(),
            told => told.to_owned(),
        },
        hostname: neighbour.system_name.clone(),
        ..Default::default()
    };
    v2::MachineNic {
        mac: nic.mac.to_string(),
        name: nic.name.clone(),
        identifier: nic.identifier.clone(),
        vendor: nic.vendor.clone(),
        model: nic.model.clone(),
        speed: nic.speed,
        neighbors: nic.neighbours.iter().map(neighbour).collect(),
        hostname: String::new(),
    }
}

fn hardware(hardware: &state::Hardware) -> v2::MachineHardware {
    let disk = |disk: &state::BlockDevice| v2::MachineBlockDevice {
        name: disk.name.clone(),
        size: disk.size,
    };
    let cpu = |cpu: &state::Cpu| v2::MetalCpu {
        vendor: cpu.vendor.clone(),
        model: cpu.model.clone(),
        cores: cpu.cores,
        threads: cpu.threads,
    };
    let gpu = |gpu: &state::Gpu| v2::MetalGpu {
        vendor: gpu.vendor.clone(),
        model: gpu.model.clone(),
    };
    v2::MachineHardware {
        memory: hardware.memory,
        disks: hardware.disks.iter().map(disk).collect(),
        cpus: hardware.cpus.iter().map(cpu).collect(),
        gpus: hardware.gpus.iter().map(gpu).collect(),
        nics: hardware.nics.iter().map(nic).collect(),
    }
}

fn status(tables: &Tables, machine: &Machine, viewer: Viewer) -> v2::MachineStatus {
    let log = tables.get::<state::EventLog>(&machine.id);
    v2::MachineStatus {
        condition: Some(condition(tables, machine, viewer)),
        led_state: Some(led_state(&machine.led)),
        liveliness: liveliness(log.map(|log| log.liveliness).unwrap_or_default()),
        metal_hammer_version: machine.hammer_version.clone(),
    }
}
