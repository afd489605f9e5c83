//! The text of `metalmesh machine show` and `metalmesh machine bmc`.

use proto_public::api::v2::{
    Machine, MachineAllocation, MachineAllocationType, MachineBmcDetails, MachineHardware,
    MachinePowerMetric, Meta, Partition,
};

use crate::output::{TableRow, print_table};
use crate::show::{event_name, last_event, machine_state, phase, reason};
use crate::text::{age, bytes, enum_text, meta_age, moment, or_dash, show_labels};

/// Number of events shown, the newest first; `machine events` lists all.
const EVENTS_SHOWN: usize = 10;
/// Label of an image with the network of the systems installed from it.
const NETWORKING_LABEL: &str = "metalmesh.dev/networking";
/// Label of a partition with the way in which its leaves connect tenants.
const FABRIC_LABEL: &str = "metalmesh.dev/fabric";

/// Labels with whose the machine is, and by what node allocations choose it.
const TENURE_LABELS: [(&str, &str); 6] = [
    ("owner", "metalmesh.dev/owner"),
    ("lessee", "metalmesh.dev/lessee"),
    ("lease until", "metalmesh.dev/lease-expires"),
    ("lease warned", "metalmesh.dev/lease-warned"),
    ("class", "metalmesh.dev/resource-class"),
    ("traits", "metalmesh.dev/traits"),
];

fn line(title: &str, value: impl Into<String>) {
    outln!("{:<14}{}", format!("{title}:"), value.into());
}

/// Prints a machine: state, allocation, hardware, events.
pub(crate) fn print(machine: &Machine) {
    line("machine", machine.uuid.clone());
    line(
        "partition",
        machine
            .partition
            .as_ref()
            .map(|p| p.id.clone())
            .unwrap_or_default(),
    );
    line(
        "size",
        machine
            .size
            .as_ref()
            .map_or_else(|| "-".into(), |s| or_dash(s.id.clone())),
    );
    if !machine.rack.is_empty() {
        line("rack", machine.rack.clone());
    }
    line("state", machine_state(machine));
    line("phase", phase(machine));
    line("reason", reason(machine));
    let liveliness = machine
        .status
        .as_ref()
        .map_or(0, |status| status.liveliness);
    line(
        "liveliness",
        enum_text("metalstack.api.v2.MachineLiveliness", liveliness),
    );
    line("last event", last_event(machine));
    error_event(machine);
    line("labels", or_dash(show_labels(machine.meta.as_ref())));
    print_tenure(machine);
    if let Some(allocation) = &machine.allocation {
        print_allocation(allocation, machine.partition.as_ref());
    }
    if let Some(hardware) = &machine.hardware {
        print_hardware(hardware);
    }
    print_events(machine);
}

/// Owner, lease and capability; nothing for a machine that has none of them.
fn print_tenure(machine: &Machine) {
    let meta = machine.meta.as_ref();
    for (title, key) in TENURE_LABELS {
        if let Some(value) = label(meta, key) {
            line(title, value);
        }
    }
}

fn error_event(machine: &Machine) {
    let recent = machine.recent_provisioning_events.as_ref();
    let Some(error) = recent.and_then(|recent| recent.last_error_event.as_ref()) else {
        return;
    };
    if error.event == 0 && error.message.is_empty() {
        return;
    }
    let when = age(error.time.as_ref());
    line(
        "last error",
        format!("{} {when} ago: {}", event_name(error), error.message),
    );
}

/// The network of the installed system, as the labels of its image and partition say now.
fn networking<'m>(allocation: &'m MachineAllocation, partition: Option<&'m Partition>) -> &'m str {
    let image = allocation
        .image
        .as_ref()
        .and_then(|image| image.meta.as_ref());
    let partition = partition.and_then(|partition| partition.meta.as_ref());
    if let Some(networking) = label(image, NETWORKING_LABEL) {
        return networking;
    }
    let is_machine = allocation.allocation_type() == MachineAllocationType::Machine;
    match label(partition, FABRIC_LABEL) {
        Some("evpn") if is_machine => "bridged",
        _ => "static",
    }
}

fn label<'m>(meta: Option<&'m Meta>, key: &str) -> Option<&'m str> {
    let labels = meta?.labels.as_ref()?;
    labels.labels.get(key).map(String::as_str)
}

fn print_allocation(allocation: &MachineAllocation, partition: Option<&Partition>) {
    outln!("\nALLOCATION");
    line("name", allocation.name.clone());
    if !allocation.description.is_empty() {
        line("description", allocation.description.clone());
    }
    line("hostname", allocation.hostname.clone());
    line("project", allocation.project.clone());
    line(
        "image",
        allocation
            .image
            .as_ref()
            .map(|i| i.id.clone())
            .unwrap_or_default(),
    );
    line("networking", networking(allocation, partition));
    let layout = allocation
        .filesystem_layout
        .as_ref()
        .map(|layout| layout.id.clone());
    line("layout", or_dash(layout.unwrap_or_default()));
    line("created by", or_dash(allocation.created_by.clone()));
    line("age", meta_age(allocation.meta.as_ref()));
    line("ssh keys", allocation.ssh_public_keys.len().to_string());
    outln!("\nNETWORKS");
    let rows = allocation.networks.iter().map(|network| {
        vec![
            network.network.clone(),
            enum_text("metalstack.api.v2.NetworkType", network.network_type),
            network.ips.join(","),
            network.prefixes.join(","),
            network.vrf.to_string(),
            network.asn.to_string(),
        ]
    });
    print_table(&["network", "type", "ips", "prefixes", "vrf", "asn"], rows);
}

#[expect(deprecated, reason = "machines have no other field for the address")]
fn print_hardware(hardware: &MachineHardware) {
    let cores: u32 = hardware.cpus.iter().map(|cpu| cpu.cores).sum();
    outln!("\nHARDWARE");
    line("memory", bytes(hardware.memory));
    let model = hardware
        .cpus
        .first()
        .map(|cpu| cpu.model.clone())
        .unwrap_or_default();
    line("cores", format!("{cores} {model}"));
    let disks = hardware
        .disks
        .iter()
        .map(|disk| vec![disk.name.clone(), bytes(disk.size)]);
    outln!("\nDISKS");
    print_table(&["device", "size"], disks);
    outln!("\nNICS");
    let nics = hardware.nics.iter().map(|nic| {
        let neighbors = nic
            .neighbors
            .iter()
            .map(|n| format!("{} {}", n.hostname, n.name));
        vec![
            nic.name.clone(),
            nic.mac.clone(),
            or_dash(neighbors.collect::<Vec<_>>().join(",")),
        ]
    });
    print_table(&["name", "mac", "neighbour"], nics);
}

fn print_events(machine: &Machine) {
    let Some(recent) = &machine.recent_provisioning_events else {
        return;
    };
    let mut events: Vec<_> = recent.events.iter().collect();
    events.sort_by_key(|e| std::cmp::Reverse(e.time.map(|time| (time.seconds, time.nanos))));
    outln!("\nEVENTS");
    type Event = proto_public::api::v2::MachineProvisioningEvent;
    let rows = events
        .into_iter()
        .take(EVENTS_SHOWN)
        .map(|event| event.cells(false));
    print_table(&Event::titles(false), rows);
}

/// Prints a BMC as it reports itself.
pub(crate) fn print_bmc(details: &MachineBmcDetails) {
    line("machine", details.uuid.clone());
    line("partition", details.partition.clone());
    let Some(report) = &details.bmc_report else {
        return;
    };
    if let Some(bmc) = &report.bmc {
        line("address", or_dash(bmc.address.clone()));
        line("mac", or_dash(bmc.mac.clone()));
        line("interface", or_dash(bmc.interface.clone()));
        line("version", or_dash(bmc.version.clone()));
        line("power", or_dash(bmc.power_state.clone()));
    }
    if let Some(metric) = &report.power_metric {
        line("draws", draw(metric));
    }
    for (at, supply) in report.power_supplies.iter().enumerate() {
        let state = format!("{} {}", supply.health, supply.state);
        line(
            &format!("supply {}", at + 1),
            or_dash(state.trim().to_owned()),
        );
    }
    if let Some(bios) = &report.bios {
        line(
            "firmware",
            format!("{} {} {}", bios.vendor, bios.version, bios.date),
        );
    }
    if let Some(fru) = &report.fru {
        line(
            "product",
            fru.product_manufacturer.clone().unwrap_or_default(),
        );
        line(
            "serial",
            or_dash(fru.product_serial.clone().unwrap_or_default()),
        );
    }
    if let Some(led) = &report.led_state {
        line("led", or_dash(led.value.clone()));
    }
    line("reported", moment(report.updated_at.as_ref()));
}

/// Mean, minimum and maximum of the power consumption.
fn draw(metric: &MachinePowerMetric) -> String {
    format!(
        "{:.0} W, {:.0} to {:.0} W in {:.0} min",
        metric.average_consumed_watts,
        metric.min_consumed_watts,
        metric.max_consumed_watts,
        metric.interval_in_min
    )
}

#[cfg(test)]
mod tests {
    use proto_public::api::v2::{Image, Labels};

    use super::*;

    fn labelled(key: &str, value: &str) -> Option<Meta> {
        let label = (key.to_owned(), value.to_owned());
        let set = (!value.is_empty()).then_some(label);
        let labels = Some(Labels {
            labels: set.into_iter().collect(),
        });
        Some(Meta {
            labels,
            ..Meta::default()
        })
    }

    #[test]
    fn networking_follows_both_labels() {
        use MachineAllocationType::{Firewall, Machine};
        for (kind, image, fabric, wanted) in [
            (Machine, "", "", "static"),
            (Machine, "", "static", "static"),
            (Machine, "", "evpn", "bridged"),
            (Machine, "routed", "evpn", "routed"),
            (Machine, "routed", "", "routed"),
            (Firewall, "", "evpn", "static"),
        ] {
            let allocation = MachineAllocation {
                allocation_type: kind.into(),
                image: Some(Image {
                    meta: labelled(NETWORKING_LABEL, image),
                    ..Image::default()
                }),
                ..MachineAllocation::default()
            };
            let partition = Partition {
                meta: labelled(FABRIC_LABEL, fabric),
                ..Partition::default()
            };
            let found = networking(&allocation, Some(&partition));
            assert_eq!(found, wanted, "{kind:?} {image:?} {fabric:?}");
        }
        assert_eq!(networking(&MachineAllocation::default(), None), "static");
    }
}
