//! Switches, and as many machines as wanted, on offer.

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::catalog::PARTITION;
use crate::scenario::{Scenario, id, mac, relabelled};

/// Machines of one leaf.
const PER_LEAF: u32 = 40;
const GIB: u64 = 1 << 30;

/// Number of a machine's id; machines count from 1.
pub(crate) fn machine(number: u32) -> String {
    id(0x1000 + u128::from(number))
}

fn leaf_of(number: u32) -> String {
    format!("leaf{}", (number - 1) / PER_LEAF)
}

fn port_of(number: u32) -> String {
    format!("swp{}", (number - 1) % PER_LEAF + 1)
}

/// The management address of a leaf, which no other has.
fn management_ip(name: &str) -> String {
    let number: u32 = name.trim_start_matches("leaf").parse().unwrap_or(65_000);
    std::net::Ipv4Addr::from(0x0a00_0001 + number).to_string()
}

fn leaf(name: &str, rack: &str) -> Value {
    let ports: Map<String, Value> = (1..=PER_LEAF)
        .map(|port| (format!("swp{port}"), Value::Null))
        .collect();
    json!({"RegisterSwitch": {
        "id": name, "partition": PARTITION, "rack": rack, "room": "room",
        "management_ip": management_ip(name), "vtep_ip": "10.0.0.1", "ports": ports,
        "identifiers": {"swp1": "Eth1/1"}, "os_vendor": "linux", "os_version": "1",
        "agent_version": "1", "hears": true,
    }})
}

/// A report of a leaf that hears all of its machines.
pub(crate) fn heard(name: &str, vni: u32, machines: impl Iterator<Item = u32>) -> Value {
    let port = |number: u32| {
        let seen = json!({
            "admin_up": true, "oper_up": true, "vni": vni,
            "neighbours": [{
                "chassis_id": "c", "port_id": "p", "system_name": "s",
                "system_description": "d", "mac": mac(number),
            }],
        });
        (port_of(number), seen)
    };
    let ports: Map<String, Value> = machines
        .filter(|number| leaf_of(*number) == name)
        .map(port)
        .collect();
    json!({"ReportSwitch": {
        "id": name, "applied_term": 1, "applied_generation": 0, "duration_ms": 1,
        "error": null, "ports": ports,
    }})
}

pub(crate) fn registration(number: u32, boot: &str) -> Value {
    json!({"RegisterMachine": {
        "id": machine(number), "hammer_version": "1", "boot_id": boot,
        "hardware": {
            "memory": GIB, "firmware": "uefi",
            "cpus": [{"vendor": "v", "model": "m", "cores": 2, "threads": 2}],
            "gpus": [],
            "disks": [{
                "name": "/dev/vda", "size": 10 * GIB, "serial": format!("disk-{number}"),
                "model": "m",
            }],
            "nics": [{
                "name": "eth0", "mac": mac(number), "identifier": "i", "vendor": "v",
                "model": "m", "speed": 1000, "boot": true,
                "neighbours": [{
                    "chassis_id": leaf_of(number), "port_id": port_of(number),
                    "system_name": leaf_of(number), "system_description": "d",
                }],
            }],
        },
        "bios": {"version": "v", "vendor": "v", "date": "d"},
        "fru": {"product_serial": "s"},
        "bmc_address": "", "bmc_mac": "", "bmc_version": "",
    }})
}

pub(crate) fn seen(scenario: &Scenario<'_>, number: u32) -> Value {
    json!({"MachineSeen": {
        "id": machine(number), "partition": PARTITION, "mac": mac(number),
        "seen_at": scenario.after(0),
    }})
}

pub(crate) fn event(scenario: &Scenario<'_>, number: u32, kind: &str) -> Value {
    json!({"MachineEvent": {
        "id": machine(number), "kind": kind, "message": "text", "time": scenario.after(0),
    }})
}

/// Switches and waiting machines.
pub(crate) fn fill(scenario: &mut Scenario<'_>, machines: u32) -> Result<()> {
    for number in 0..machines.div_ceil(PER_LEAF) {
        scenario.done(leaf(&format!("leaf{number}"), &format!("rack-{number}")))?;
    }
    for number in 1..=machines {
        for op in [
            seen(scenario, number),
            event(scenario, number, "Preparing"),
            event(scenario, number, "Registering"),
        ] {
            scenario.done(op)?;
            scenario.later(1);
        }
    }
    for number in 0..machines.div_ceil(PER_LEAF) {
        scenario.done(heard(&format!("leaf{number}"), 0, 1..=machines))?;
    }
    for number in 1..=machines {
        scenario.done(registration(number, "boot-1"))?;
        scenario.done(json!({"WipeDone": {
            "id": machine(number), "disks": [{"name": "/dev/vda"}],
        }}))?;
        let op = event(scenario, number, "Waiting");
        scenario.done(op)?;
        scenario.later(1);
    }
    Ok(())
}

/// Commands that concern switches alone.
pub(crate) fn rows(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(leaf("spare", "rack-0"))?;
    scenario.row(json!({"UpdateSwitch": {
        "id": "spare", "lock": "server", "description": "text", "replace_mode": "replace",
        "management_ip": management_ip("spare"), "management_user": "user", "console_command": "ssh",
        "labels": relabelled(),
    }}))?;
    scenario.row(json!({"SetSwitchPort": {"id": "spare", "port": "swp1", "admin_up": true}}))?;
    scenario.row(json!({"DrainSwitch": {"id": "spare", "drained": true, "force": true}}))?;
    scenario.done(json!({"DrainSwitch": {"id": "spare", "drained": false}}))?;
    scenario.row(json!({"MigrateSwitch": {"from": "leaf0", "to": "spare"}}))?;
    scenario.done(json!({"MigrateSwitch": {"from": "spare", "to": "leaf0"}}))?;
    scenario.row(json!({"DeleteSwitch": {"id": "spare"}}))
}
