//! Machines for the wire, with the fields that published clients require.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_front::listing::EncodedItems;
use control_gate::refusal::invalid;
use control_state::{self as state, Machine, Tables};
use proto_public::MachinePlace;
use proto_public::api::v2;
use proto_types::SizeId;
use tonic::Status;

use super::enums::{allocation_type, from_protocol, liveliness, nat_type, network_type, protocol};
use super::machine_history::{Viewer, condition, events};
use super::{catalog, labels, layout, meta, parse_all, time};

/// Label with the phase, for which the contract has no field.
pub const PHASE_LABEL: &str = "metalmesh.dev/phase";
/// Label with the time of the last change of the phase.
pub const SINCE_LABEL: &str = "metalmesh.dev/phase-since";

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
    for it in machines {
        let place = places
            .entry((it.partition.as_ref(), it.size.as_ref()))
            .or_insert_with(|| {
                MachinePlace::of(Some(partition(tables, it)), Some(size(tables, it)))
            });
        let machine = without_place(tables, it, viewer);
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
            .map(|allocated| allocation(tables, allocated)),
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
    shown
}

/// Name of a machine's way back, while it goes on.
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

/// An allocation for the wire.
pub fn allocation(tables: &Tables, allocation: &state::Allocation) -> v2::MachineAllocation {
    let image = tables.get::<state::Image>(&allocation.image).map_or_else(
        || v2::Image {
            id: allocation.image.to_string(),
            meta: Some(v2::Meta::default()),
            ..Default::default()
        },
        |image| catalog::image(image),
    );
    v2::MachineAllocation {
        uuid: allocation.id.to_string(),
        meta: Some(v2::Meta {
            labels: Some(labels(&allocation.labels)),
            created_at: time(allocation.created_at),
            updated_at: time(allocation.changed_at()),
            generation: allocation.generation,
            deletion_task_id: None,
        }),
        name: allocation.name.clone(),
        description: allocation.description.clone(),
        created_by: allocation.created_by.clone(),
        project: allocation.project.to_string(),
        image: Some(image),
        filesystem_layout: Some(layout::layout(&allocation.layout)),
        networks: allocation.networks.iter().map(network).collect(),
        hostname: allocation.hostname.clone(),
        ssh_public_keys: allocation.ssh_public_keys.clone(),
        userdata: allocation.userdata.clone(),
        allocation_type: allocation_type(allocation.kind),
        firewall_rules: firewall_rules(allocation),
        dns_servers: catalog::dns(&allocation.dns_servers),
        ntp_servers: catalog::ntp(&allocation.ntp_servers),
        vpn: vpn(tables, allocation),
        placement_labels: Some(labels(&allocation.placement_labels)),
    }
}

/// The way into a firewall. Its key is for the machine alone: see [`super::published::order`].
fn vpn(tables: &Tables, allocation: &state::Allocation) -> Option<v2::MachineVpn> {
    let member = tables.get::<state::VpnMember>(&allocation.id)?;
    Some(v2::MachineVpn {
        control_plane_address: member.access.address.clone(),
        auth_key: String::new(),
        connected: member.connected,
        ips: member.ips.iter().map(ToString::to_string).collect(),
    })
}

fn network(network: &state::AllocationNetwork) -> v2::MachineNetwork {
    let texts = |nets: &[ipnet::IpNet]| nets.iter().map(ToString::to_string).collect();
    v2::MachineNetwork {
        network: network.network.to_string(),
        prefixes: texts(&network.prefixes),
        destination_prefixes: texts(&network.destination_prefixes),
        ips: network.ips.iter().map(ToString::to_string).collect(),
        network_type: network_type(network.kind),
        nat_type: nat_type(network.nat),
        vrf: network.vrf.into(),
        asn: network.asn.0,
        project: network.project.map(|project| project.to_string()),
    }
}

fn firewall_rules(allocation: &state::Allocation) -> Option<v2::FirewallRules> {
    if allocation.kind != state::AllocationType::Firewall {
        return None;
    }
    let texts = |nets: &[ipnet::IpNet]| nets.iter().map(ToString::to_string).collect();
    let egress = |rule: &state::FirewallRule| v2::FirewallEgressRule {
        protocol: protocol(rule.protocol),
        ports: rule.ports.clone(),
        to: texts(&rule.to),
        comment: rule.comment.clone(),
    };
    let ingress = |rule: &state::FirewallRule| v2::FirewallIngressRule {
        protocol: protocol(rule.protocol),
        ports: rule.ports.clone(),
        to: texts(&rule.to),
        from: texts(&rule.from),
        comment: rule.comment.clone(),
    };
    Some(v2::FirewallRules {
        egress: allocation
            .firewall_rules
            .egress
            .iter()
            .map(egress)
            .collect(),
        ingress: allocation
            .firewall_rules
            .ingress
            .iter()
            .map(ingress)
            .collect(),
    })
}

/// Firewall rules from the wire.
///
/// # Errors
/// `invalid_argument` for an unspecified protocol or a malformed prefix.
pub fn from_firewall_rules(rules: v2::FirewallRules) -> Result<state::FirewallRules, Status> {
    let proto = |number| {
        from_protocol(number).ok_or_else(|| invalid("firewall_rules.protocol", "is unspecified"))
    };
    let egress = |rule: v2::FirewallEgressRule| {
        Ok(state::FirewallRule {
            protocol: proto(rule.protocol)?,
            ports: rule.ports,
            to: parse_all("firewall_rules.egress.to", &rule.to)?,
            from: Vec::new(),
            comment: rule.comment,
        })
    };
    let ingress = |rule: v2::FirewallIngressRule| {
        Ok(state::FirewallRule {
            protocol: proto(rule.protocol)?,
            ports: rule.ports,
            to: parse_all("firewall_rules.ingress.to", &rule.to)?,
            from: parse_all("firewall_rules.ingress.from", &rule.from)?,
            comment: rule.comment,
        })
    };
    Ok(state::FirewallRules {
        egress: rules
            .egress
            .into_iter()
            .map(egress)
            .collect::<Result<_, Status>>()?,
        ingress: rules
            .ingress
            .into_iter()
            .map(ingress)
            .collect::<Result<_, Status>>()?,
    })
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

/// The power state as published clients compare it: `ON`, `OFF`.
fn power_state(known: &str) -> String {
    known.to_ascii_uppercase()
}

/// The identify LED as published clients compare it: `LED-ON`, `LED-OFF`.
fn led_state(led: &state::Led) -> v2::MachineChassisIdentifyLedState {
    let value = match led.value.as_str() {
        "" => String::new(),
        known => format!("LED-{}", known.to_ascii_uppercase()),
    };
    v2::MachineChassisIdentifyLedState {
        value,
        description: led.description.clone(),
    }
}

/// The BMC of a machine, without its credentials, which only agents receive.
pub fn bmc_details(machine: &Machine) -> v2::MachineBmcDetails {
    let known = machine.bmc.clone().unwrap_or_default();
    let draw = known.draw.unwrap_or_default();
    v2::MachineBmcDetails {
        uuid: machine.id.to_string(),
        partition: machine
            .partition
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        rack: machine.rack.clone(),
        room: machine.room.clone(),
        size: machine
            .size
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        bmc_report: Some(v2::MachineBmcReport {
            uuid: machine.id.to_string(),
            bmc: Some(v2::MachineBmc {
                address: known.address,
                mac: known.mac,
                user: String::new(),
                password: String::new(),
                interface: known.interface,
                version: known.version,
                power_state: power_state(&known.power_state),
            }),
            bios: Some(v2::MachineBios {
                version: machine.bios.version.clone(),
                vendor: machine.bios.vendor.clone(),
                date: machine.bios.date.clone(),
            }),
            fru: Some(fru(&machine.fru)),
            power_metric: draw.metric.map(power_metric),
            power_supplies: draw.supplies.into_iter().map(power_supply).collect(),
            led_state: Some(led_state(&machine.led)),
            updated_at: time(known.updated_at),
        }),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the wire has no finer one")]
fn power_metric(metric: state::PowerMetric) -> v2::MachinePowerMetric {
    let units = |thousandths: u64| (thousandths as f64 / 1000.0) as f32;
    v2::MachinePowerMetric {
        average_consumed_watts: units(metric.average_mw),
        interval_in_min: units(metric.interval_milliminutes),
        max_consumed_watts: units(metric.max_mw),
        min_consumed_watts: units(metric.min_mw),
    }
}

fn power_supply(supply: state::PowerSupply) -> v2::MachinePowerSupply {
    v2::MachinePowerSupply {
        health: supply.health,
        state: supply.state,
    }
}

/// Field-replaceable-unit data for the wire.
pub fn fru(fru: &state::Fru) -> v2::MachineFru {
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    v2::MachineFru {
        chassis_part_number: some(&fru.chassis_part_number),
        chassis_part_serial: some(&fru.chassis_part_serial),
        board_mfg: some(&fru.board_mfg),
        board_mfg_serial: some(&fru.board_mfg_serial),
        board_part_number: some(&fru.board_part_number),
        product_manufacturer: some(&fru.product_manufacturer),
        product_part_number: some(&fru.product_part_number),
        product_serial: some(&fru.product_serial),
    }
}
