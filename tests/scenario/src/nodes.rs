//! Nodes of Ironic's API: one that is enrolled, its fields, documents, and a wipe.

use anyhow::{Context, Result};
use control_state::NodeRecord;
use proto_types::MachineId;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::catalog::PARTITION;
use crate::fleet::{event, machine, registration};
use crate::life::open_order;
use crate::scenario::{Scenario, id, mac};

/// Number of the id of the node that is enrolled, above those of machines.
const NODE: u128 = 1 << 64;
/// Numbers of the ids of documents.
const CHASSIS: u128 = NODE + 1;
const RUNBOOK: u128 = NODE + 2;
/// Number of the id of the node's port group.
const GROUP: u128 = NODE + 3;
/// Number of its card's address, which no machine has.
const CARD: u32 = 0x00ff_0001;
/// Number of the machine that is wiped.
const WIPED: u32 = 3;

pub(crate) fn rows(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(document(CHASSIS, "chassis"))?;
    scenario.done(document(RUNBOOK, "runbook"))?;
    let enrol = json!({"EnrolNode": {
        "machine": id(NODE), "project": id(1), "owner": id(1), "resource_class": "baremetal",
        "content": content(scenario, "node-1"),
    }});
    scenario.row(enrol)?;
    let set = json!({"SetNode": {
        "machine": id(NODE), "project": id(1), "expected": 1,
        "content": content(scenario, "node-2"),
    }});
    scenario.row(set)?;
    update(scenario)?;
    scenario.done(json!({"DeleteMachine": {"id": id(NODE)}}))?;
    scenario.done(json!({"DeleteNodeDocument": {"id": id(RUNBOOK)}}))?;
    scenario.row(json!({"DeleteNodeDocument": {"id": id(CHASSIS)}}))?;
    wipe(scenario)
}

/// The node comes into the hands of a lessee, and out of them.
fn update(scenario: &mut Scenario<'_>) -> Result<()> {
    let update = json!({"UpdateNode": {
        "machine": id(NODE),
        "owner": {"machine": id(NODE), "owner": id(1)},
        "grant": {
            "id": id(NODE + 6), "machine": id(NODE), "project": id(1), "lessee": id(2),
            "expires_at": scenario.after(1000),
        },
        "capability": {"machine": id(NODE), "resource_class": {"set": "baremetal"}},
        "node": {"machine": id(NODE), "expected": 2, "content": content(scenario, "node-3")},
    }});
    scenario.row(update)?;
    // A lessee's additional field, beside which the row keeps that of before.
    let mut used = content(scenario, "node-3");
    used["extra"] = json!({"key": "\"other\""});
    let machine = MachineId::new(Uuid::from_u128(NODE));
    let node = scenario.tables().get::<NodeRecord>(&machine);
    let expected = node.context("no node")?.meta.generation;
    scenario.done(json!({"SetNode": {
        "machine": id(NODE), "project": id(2), "expected": expected, "content": used,
    }}))?;
    scenario.done(json!({"UpdateNode": {
        "machine": id(NODE), "end": {"machine": id(NODE), "by": "administrator"},
    }}))
}

fn document(number: u128, kind: &str) -> Value {
    json!({"SetNodeDocument": {
        "id": id(number), "kind": kind, "expected": 0, "name": "CUSTOM_FIX", "owner": id(1),
        "public": true, "fields": {"extra": "{}"},
    }})
}

/// A content with something of everything.
fn content(scenario: &Scenario<'_>, name: &str) -> Value {
    let now = scenario.after(0);
    let fields = json!({"key": "\"value\""});
    let stage = json!({
        "state": "manageable", "since": now, "boot_id": "boot-1", "phase_since": now,
        "error": "text",
    });
    let port = json!({
        "id": id(NODE + 5), "name": "left", "description": "text", "group": id(GROUP),
        "fields": fields, "created_at": now, "updated_at": now,
    });
    let group = json!({
        "id": id(GROUP), "name": "bond", "address": mac(CARD), "fields": fields,
        "created_at": now, "updated_at": now,
    });
    json!({
        "name": name, "driver": "metalmesh", "interfaces": {"power_interface": "metalmesh"},
        "description": "text", "extra": fields, "properties": fields, "driver_info": fields,
        "instance_info": fields, "instance_name": "web", "network_data": fields,
        "instance": id(NODE + 4), "chassis": id(CHASSIS), "conductor_group": "a", "shard": "b",
        "parent": machine(WIPED), "automated_clean": true, "disable_power_off": true,
        "protected": "text", "retired": "text",
        "maintenance": {"reason": "text", "since": now}, "boot_device": "pxe",
        "stage": stage, "ports": {mac(CARD): port}, "groups": [group],
        "vifs": {"private": {"network": "private", "mac": mac(CARD)}},
    })
}

/// A free machine that is wiped again, up to its next wait.
fn wipe(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(json!({"WipeNode": {"machine": machine(WIPED)}}))?;
    // Boot device and power, the newer order first.
    for _ in 0..2 {
        let order = open_order(scenario).context("no order to boot the installer")?;
        scenario.done(json!({"BmcOrderDone": {"id": order, "partition": PARTITION}}))?;
    }
    for kind in ["Preparing", "Registering"] {
        let op = event(scenario, WIPED, kind);
        scenario.done(op)?;
        scenario.later(1);
    }
    scenario.done(registration(WIPED, "boot-2"))?;
    scenario.done(json!({"WipeDone": {
        "id": machine(WIPED), "disks": [{"name": "/dev/vda"}],
    }}))?;
    let op = event(scenario, WIPED, "Waiting");
    scenario.done(op)?;
    scenario.later(1);
    Ok(())
}
