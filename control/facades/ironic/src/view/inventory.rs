//! The hardware of a node, as Ironic's agent reports it.

use control_state::{BlockDevice, Bmc, Cpu, Machine, Nic, bmc_host};
use serde_json::{Value, json};

use super::node_info::boot_mode;
use super::text_or_null;

/// Bytes of a mebibyte.
const MIB: u64 = 1024 * 1024;

/// The inventory of a machine. `is_bmc_shown` is `false` for callers that do not use the machine.
pub(crate) fn inventory(machine: &Machine, is_bmc_shown: bool) -> Value {
    let hardware = &machine.hardware;
    let bmc = machine.bmc.as_ref().filter(|_| is_bmc_shown);
    let of_bmc = |text: fn(&Bmc) -> &str| text_or_null(bmc.map_or("", text));
    let boot_card = hardware.nics.iter().find(|nic| nic.boot);
    json!({
        "inventory": {
            "interfaces": hardware.nics.iter().map(interface).collect::<Vec<Value>>(),
            "cpu": cpu(&hardware.cpus),
            "disks": hardware.disks.iter().map(disk).collect::<Vec<Value>>(),
            "memory": {"total": hardware.memory, "physical_mb": hardware.memory / MIB},
            "bmc_address": of_bmc(|bmc| bmc_host(&bmc.address)),
            "bmc_mac": of_bmc(|bmc| &bmc.mac),
            "system_vendor": system_vendor(machine),
            "boot": {
                "current_boot_mode": boot_mode(machine),
                "pxe_interface": boot_card.map(|nic| nic.mac.to_string()),
            },
            "hostname": null,
        },
        "plugin_data": {},
    })
}

fn interface(nic: &Nic) -> Value {
    json!({
        "name": nic.name,
        "mac_address": nic.mac.to_string(),
        "ipv4_address": null,
        "ipv6_address": null,
        "has_carrier": !nic.neighbours.is_empty(),
        "lldp": null,
        "vendor": text_or_null(&nic.vendor),
        "product": text_or_null(&nic.model),
        "client_id": null,
        "biosdevname": null,
        "speed_mbps": Some(nic.speed).filter(|speed| *speed > 0),
        "pci_address": text_or_null(&nic.identifier),
    })
}

fn cpu(sockets: &[Cpu]) -> Value {
    let model = sockets.first().map_or("", |socket| socket.model.as_str());
    let threads = sockets.iter().map(|socket| u64::from(socket.threads));
    json!({
        "model_name": text_or_null(model),
        "frequency": null,
        "count": threads.sum::<u64>(),
        "architecture": "x86_64",
        "flags": [],
        "socket_count": sockets.len(),
    })
}

fn disk(disk: &BlockDevice) -> Value {
    json!({
        "name": disk.name,
        "model": text_or_null(&disk.model),
        "size": disk.size,
        "rotational": disk.rotational,
        "serial": text_or_null(&disk.serial),
        "vendor": null,
        "wwn": null,
    })
}

fn system_vendor(machine: &Machine) -> Value {
    let (fru, bios) = (&machine.fru, &machine.bios);
    json!({
        "manufacturer": text_or_null(&fru.product_manufacturer),
        "product_name": text_or_null(&fru.product_part_number),
        "serial_number": text_or_null(&fru.product_serial),
        "firmware": {
            "vendor": text_or_null(&bios.vendor),
            "version": text_or_null(&bios.version),
            "build_date": text_or_null(&bios.date),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::SeenNode;

    fn node() -> SeenNode {
        let fields = json!({
            "hardware": {
                "memory": 8 * 1024 * MIB,
                "cpus": [
                    {"model": "Epyc", "cores": 8, "threads": 16},
                    {"model": "Epyc", "cores": 8, "threads": 16},
                ],
                "disks": [{"name": "/dev/sda", "size": 1000, "serial": "s1"}],
                "nics": [
                    {"name": "eth0", "mac": "52:54:00:00:00:01", "speed": 25000},
                    {"name": "eth1", "mac": "52:54:00:00:00:02", "boot": true},
                ],
                "firmware": "bios",
            },
            "bmc": {"address": "10.0.0.9:443", "mac": "52:54:00:00:00:99"},
            "fru": {"product_serial": "p1"},
            "bios": {"version": "1.2"},
        });
        SeenNode::of_json(fields, None)
    }

    #[test]
    fn hardware_is_shown_in_ironics_words() {
        let shown = inventory(&node().machine, true);
        let inventory = &shown["inventory"];
        for (pointer, expected) in [
            ("/memory/physical_mb", json!(8192)),
            ("/cpu/count", json!(32)),
            ("/cpu/model_name", json!("Epyc")),
            ("/disks/0/serial", json!("s1")),
            ("/disks/0/model", Value::Null),
            ("/interfaces/0/speed_mbps", json!(25000)),
            ("/interfaces/1/speed_mbps", Value::Null),
            ("/interfaces/1/mac_address", json!("52:54:00:00:00:02")),
            ("/boot/pxe_interface", json!("52:54:00:00:00:02")),
            ("/boot/current_boot_mode", json!("bios")),
            ("/system_vendor/serial_number", json!("p1")),
            ("/system_vendor/firmware/version", json!("1.2")),
            ("/bmc_address", json!("10.0.0.9")),
            ("/bmc_mac", json!("52:54:00:00:00:99")),
        ] {
            assert_eq!(inventory.pointer(pointer), Some(&expected), "{pointer}");
        }
        assert_eq!(shown["plugin_data"], json!({}));
    }

    #[test]
    fn the_bmc_is_for_those_who_use_the_machine() {
        let shown = inventory(&node().machine, false);
        assert!(shown["inventory"]["bmc_address"].is_null());
        assert!(shown["inventory"]["bmc_mac"].is_null());
    }
}
