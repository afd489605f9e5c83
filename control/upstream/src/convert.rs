//! Converts reports of published agents into state objects, and orders into contract messages.

use std::collections::BTreeMap;
use std::str::FromStr;

use control_convert::machine::allocation;
use control_convert::machine_history::Viewer;
use control_convert::switch::switch;
use control_convert::{from_time, parse};
use control_state::{self as state, BmcReading, Segment, Switch, Tables};
use proto_public::api::v2;
use proto_types::{MacAddr, PartitionId, Timestamp, Vni};
use tonic::Status;

/// The first disk of a machine that is not removable, in layouts.
const DISK_FIRST: &str = "@first";
/// The smallest of those.
const DISK_SMALLEST: &str = "@smallest";

/// The hardware of a machine.
///
/// # Errors
/// `invalid_argument` for a card without a usable address.
pub(crate) fn from_hardware(
    tables: &Tables,
    partition: &PartitionId,
    hardware: v2::MachineHardware,
) -> Result<state::Hardware, Status> {
    let cpu = |cpu: v2::MetalCpu| state::Cpu {
        vendor: cpu.vendor,
        model: cpu.model,
        cores: cpu.cores,
        threads: cpu.threads,
    };
    let gpu = |gpu: v2::MetalGpu| state::Gpu {
        vendor: gpu.vendor,
        model: gpu.model,
    };
    let disk = |disk: v2::MachineBlockDevice| state::BlockDevice {
        name: device_path(disk.name),
        size: disk.size,
        ..state::BlockDevice::default()
    };
    let nics = hardware.nics.into_iter();
    Ok(state::Hardware {
        memory: hardware.memory,
        cpus: hardware.cpus.into_iter().map(cpu).collect(),
        gpus: hardware.gpus.into_iter().map(gpu).collect(),
        disks: hardware.disks.into_iter().map(disk).collect(),
        nics: nics
            .map(|nic| from_nic(tables, partition, nic))
            .collect::<Result<_, _>>()?,
        firmware: state::Firmware::Unknown,
    })
}

fn device_path(name: String) -> String {
    if name.starts_with('/') {
        name
    } else {
        format!("/dev/{name}")
    }
}

#[expect(
    deprecated,
    reason = "published agents write the address into this field"
)]
fn from_nic(
    tables: &Tables,
    partition: &PartitionId,
    nic: v2::MachineNic,
) -> Result<state::Nic, Status> {
    let neighbours = nic.neighbors.iter();
    Ok(state::Nic {
        name: nic.name,
        mac: parse("hardware.nics.mac", &nic.mac)?,
        identifier: nic.identifier,
        vendor: nic.vendor,
        model: nic.model,
        speed: nic.speed,
        neighbours: neighbours
            .map(|heard| neighbour(tables, partition, heard))
            .collect(),
        boot: false,
    })
}

/// Whom a card hears. Published agents tell a port by its address or by what LLDP calls it; here
/// it goes by the switch and the port's name, as far as they are known.
#[expect(
    deprecated,
    reason = "published agents write the address into this field"
)]
fn neighbour(tables: &Tables, partition: &PartitionId, heard: &v2::MachineNic) -> state::Neighbour {
    let mac = MacAddr::from_str(&heard.mac).ok();
    let names = [heard.identifier.as_str(), heard.name.as_str()];
    let by_name = |(name, port): (&String, &state::SwitchPort)| {
        let is =
            |called: &&str| *called == name.as_str() || port.identifier.as_deref() == Some(*called);
        names.iter().filter(|called| !called.is_empty()).any(is)
    };
    let by_mac = |port: &state::SwitchPort| mac.is_some() && port.mac == mac;
    let known = heard.hostname.parse().ok();
    let known = known.and_then(|id| tables.get::<Switch>(&id));
    let port_of = |switch: &Switch, by_names: bool| {
        let mut ports = switch.ports.iter();
        let found = ports.find(|entry| by_mac(entry.1) || by_names && by_name(*entry));
        found.map(|(name, _)| (switch.id.to_string(), name.clone()))
    };
    let here = |switch: &&std::sync::Arc<Switch>| switch.partition == *partition;
    let found = match known.filter(here) {
        Some(switch) => port_of(switch, true),
        // Names of ports are the same on every switch.
        None => tables
            .all::<Switch>()
            .filter(here)
            .find_map(|switch| port_of(switch, false)),
    };
    let (system_name, port_id) = found.unwrap_or_else(|| {
        let port = names.into_iter().find(|name| !name.is_empty());
        (heard.hostname.clone(), port.unwrap_or_default().to_owned())
    });
    state::Neighbour {
        chassis_id: heard.mac.clone(),
        port_id,
        identifier: heard.identifier.clone(),
        system_name,
        ..state::Neighbour::default()
    }
}

/// Firmware's identity.
pub(crate) fn from_bios(bios: v2::MachineBios) -> state::Bios {
    state::Bios {
        version: bios.version,
        vendor: bios.vendor,
        date: bios.date,
    }
}

/// Field-replaceable-unit data.
pub(crate) fn from_fru(fru: Option<v2::MachineFru>) -> state::Fru {
    let fru = fru.unwrap_or_default();
    state::Fru {
        chassis_part_number: fru.chassis_part_number.unwrap_or_default(),
        chassis_part_serial: fru.chassis_part_serial.unwrap_or_default(),
        board_mfg: fru.board_mfg.unwrap_or_default(),
        board_mfg_serial: fru.board_mfg_serial.unwrap_or_default(),
        board_part_number: fru.board_part_number.unwrap_or_default(),
        product_manufacturer: fru.product_manufacturer.unwrap_or_default(),
        product_part_number: fru.product_part_number.unwrap_or_default(),
        product_serial: fru.product_serial.unwrap_or_default(),
    }
}

/// A reading of a BMC.
///
/// # Errors
/// `invalid_argument` if the machine id does not parse.
pub(crate) fn from_bmc_report(
    report: v2::MachineBmcReport,
    now: Timestamp,
) -> Result<BmcReading, Status> {
    let bmc = report.bmc.unwrap_or_default();
    let bios = report.bios.unwrap_or_default();
    let led = report.led_state.unwrap_or_default().value;
    Ok(BmcReading {
        machine: Some(parse("bmc_reports.uuid", &report.uuid)?),
        address: bmc.address,
        mac: bmc.mac,
        interface: bmc.interface,
        bmc_version: bmc.version,
        bios_version: bios.version,
        bios_vendor: bios.vendor,
        power_state: bmc.power_state.to_ascii_lowercase(),
        led_state: led_state(&led),
        fru: from_fru(report.fru),
        draw: draw(report.power_metric, report.power_supplies),
        error: None,
        observed_at: report.updated_at.as_ref().map_or(now, from_time),
        heard_at: Some(now),
        // Kept with the password, apart from what is read.
        user: String::new(),
    })
}

/// Power draw of a machine; `None` if the agent did not report any.
fn draw(
    metric: Option<v2::MachinePowerMetric>,
    supplies: Vec<v2::MachinePowerSupply>,
) -> Option<state::Draw> {
    if metric.is_none() && supplies.is_empty() {
        return None;
    }
    let supply = |supply: v2::MachinePowerSupply| state::PowerSupply {
        health: supply.health,
        state: supply.state,
    };
    let draw = state::Draw {
        metric: metric.map(|metric| state::PowerMetric {
            average_mw: thousandths(metric.average_consumed_watts),
            interval_milliminutes: thousandths(metric.interval_in_min),
            max_mw: thousandths(metric.max_consumed_watts),
            min_mw: thousandths(metric.min_consumed_watts),
        }),
        supplies: supplies.into_iter().map(supply).collect(),
    };
    Some(draw.clipped())
}

/// NaN and negative readings become 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and makes nothing of what is no number"
)]
fn thousandths(number: f32) -> u64 {
    (f64::from(number) * 1000.0).round() as u64
}

/// Published agents write `LED-ON`.
fn led_state(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    text.strip_prefix("led-").map(str::to_owned).unwrap_or(text)
}

/// An allocation for hammer of the published stack, which knows disks by their paths only.
/// `vpn_key` opens a member's key.
pub(crate) fn order(
    tables: &Tables,
    machine: &state::Machine,
    of: &state::Allocation,
    vpn_key: impl Fn(&state::VpnMember) -> String,
) -> v2::MachineAllocation {
    let numbered = state::Allocation {
        layout: state::life::numbered(&of.layout),
        ..of.clone()
    };
    let mut order = allocation(tables, &numbered, Viewer::Admin);
    // Only what an administrator gave: the files that control makes are for our own hammer.
    order.userdata.clone_from(&of.userdata);
    let member = tables.get::<state::VpnMember>(&of.id);
    if let (Some(vpn), Some(member)) = (&mut order.vpn, member) {
        vpn.auth_key = vpn_key(member);
    }
    if let Some(layout) = &mut order.filesystem_layout {
        let real = |device: &mut String| *device = real_device(device, &machine.hardware.disks);
        layout
            .disks
            .iter_mut()
            .for_each(|disk| real(&mut disk.device));
        layout
            .filesystems
            .iter_mut()
            .for_each(|filesystem| real(&mut filesystem.device));
        let raids = layout.raid.iter_mut().flat_map(|raid| &mut raid.devices);
        let groups = layout.volume_groups.iter_mut();
        let groups = groups.flat_map(|group| &mut group.devices);
        raids.chain(groups).for_each(real);
    }
    order
}

/// `@first:2` as `/dev/sda2`; paths stay.
fn real_device(device: &str, disks: &[state::BlockDevice]) -> String {
    let mut fixed = disks.iter().filter(|disk| disk.is_fixed());
    let (disk, rest) = if let Some(rest) = device.strip_prefix(DISK_FIRST) {
        (fixed.next(), rest)
    } else if let Some(rest) = device.strip_prefix(DISK_SMALLEST) {
        (fixed.min_by_key(|disk| disk.size), rest)
    } else {
        return device.to_owned();
    };
    let Some(disk) = disk else {
        return device.to_owned();
    };
    let number = rest.trim_start_matches(':');
    let ends_in_digit = disk.name.ends_with(|last: char| last.is_ascii_digit());
    let between = if ends_in_digit && !number.is_empty() {
        "p"
    } else {
        ""
    };
    format!("{}{between}{number}", disk.name)
}

/// A switch for its agent: what its ports shall be. No VRF is the segment in which machines boot;
/// a port that is to be isolated goes down.
pub(crate) fn switch_order(tables: &Tables, of: &Switch) -> v2::Switch {
    let mut order = switch(tables, of);
    let machines: BTreeMap<&str, _> = state::query::switch_machines(tables, &of.id).collect();
    let connected = order.machine_connections.iter_mut();
    let connected = connected.filter_map(|connection| connection.nic.as_mut());
    for nic in order.nics.iter_mut().chain(connected) {
        let machine = machines.get(nic.name.as_str());
        let port = of.ports.get(&nic.name);
        let segment = match port.and_then(|port| port.kept) {
            Some(Vni::NONE) => Segment::Isolated,
            _ => machine.map(|machine| machine.segment).unwrap_or_default(),
        };
        match segment {
            Segment::Provisioning => nic.vrf = None,
            Segment::Tenant => {}
            Segment::Isolated => {
                nic.vrf = None;
                if let Some(state) = &mut nic.state {
                    state.desired = Some(v2::SwitchPortStatus::Down.into());
                }
            }
        }
    }
    order
}

/// A port's BGP session.
pub(crate) fn from_bgp_state(state: v2::SwitchBgpPortState) -> state::BgpSession {
    let at = state.bgp_timer_up_established.as_ref().map(from_time);
    state::BgpSession {
        neighbour: state.neighbor,
        peer_group: state.peer_group,
        vrf: state.vrf_name,
        state: state.bgp_state,
        established_at: at.unwrap_or_default(),
        sent_prefixes: state.sent_prefix_counter,
        accepted_prefixes: state.accepted_prefix_counter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_layouts_are_named_by_their_paths() {
        let disk = |name: &str, size| state::BlockDevice {
            name: name.into(),
            size,
            ..Default::default()
        };
        let disks = [disk("/dev/nvme0n1", 10), disk("/dev/sda", 5)];
        for (device, expected) in [
            ("@first", "/dev/nvme0n1"),
            ("@first:2", "/dev/nvme0n1p2"),
            ("@smallest", "/dev/sda"),
            ("@smallest:1", "/dev/sda1"),
            ("/dev/sdb3", "/dev/sdb3"),
        ] {
            assert_eq!(real_device(device, &disks), expected, "{device}");
        }
        assert_eq!(real_device("@first:2", &[]), "@first:2");
        assert_eq!(device_path("sda".into()), "/dev/sda");
        assert_eq!(led_state("LED-ON"), "on");
        assert_eq!(led_state("blinking"), "blinking");
    }
}
