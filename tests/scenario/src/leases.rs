//! Owners, lessees and node allocations of machines.

use anyhow::Result;
use serde_json::{Value, json};

use crate::fleet::machine;
use crate::scenario::{Scenario, id};

const DAY_MS: u64 = 24 * 3_600_000;

/// Two machines from the owner to the end of the lease; both are the site's again afterwards.
pub(crate) fn rows(scenario: &mut Scenario<'_>) -> Result<()> {
    for number in [2, 3] {
        scenario.done(json!({"SetMachineCapability": {
            "machine": machine(number), "resource_class": {"set": "baremetal"},
            "traits": {"replace": ["CUSTOM_GOLD"]},
        }}))?;
    }
    scenario.row(json!({"SetMachineCapability": {
        "machine": machine(2), "resource_class": {"set": "baremetal"},
        "traits": {"patch": {"add": ["HW_CPU_X86_AVX2"], "remove": ["CUSTOM_OLD"]}},
    }}))?;
    scenario.row(json!({"SetMachineOwner": {"machine": machine(2), "owner": id(2)}}))?;
    scenario.row(json!({"TransferMachine": {
        "machine": machine(2), "project": id(2), "to": id(1),
    }}))?;
    lease(scenario)?;
    allocations(scenario)?;
    scenario.done(json!({"SetMachineOwner": {"machine": machine(2), "owner": null}}))
}

fn lease(scenario: &mut Scenario<'_>) -> Result<()> {
    let grant = json!({"GrantLease": {
        "id": id(40), "machine": machine(2), "project": id(1), "lessee": id(2),
        "expires_at": scenario.after(DAY_MS), "extendable_until": scenario.after(3 * DAY_MS),
        "warning_ms": 1000, "comment": "text",
    }});
    scenario.row(grant)?;
    let extend = json!({"ExtendLease": {
        "machine": machine(2), "project": id(1), "lease": id(40),
        "expires_at": scenario.after(2 * DAY_MS), "limit": {"until": scenario.after(4 * DAY_MS)},
    }});
    scenario.row(extend)?;
    scenario.done(json!({"CreateProject": {
        "id": id(3), "tenant": "acme", "name": "project-3", "description": "", "labels": {},
    }}))?;
    scenario.row(json!({"RequestLeaseTransfer": {
        "machine": machine(2), "project": id(2), "lease": id(40), "to": id(3),
    }}))?;
    scenario.row(json!({"DecideLeaseTransfer": {
        "machine": machine(2), "project": id(1), "lease": id(40), "to": id(3), "consent": true,
    }}))?;
    scenario.row(json!({"EndLease": {
        "machine": machine(2), "by": {"project": id(3)}, "lease": id(40), "reason": "text",
    }}))?;
    scenario.done(json!({"DeleteProject": {"id": id(3)}}))
}

fn allocations(scenario: &mut Scenario<'_>) -> Result<()> {
    let wanted = |number: u128, owner: Value| {
        json!({"CreateNodeAllocation": {
            "id": id(number), "name": format!("node-{number}"), "owner": owner,
            "resource_class": "baremetal", "traits": ["CUSTOM_GOLD"],
            "candidates": [machine(2)], "extra": {"key": "value"}, "seed": 7,
        }})
    };
    scenario.row(wanted(41, json!(id(1))))?;
    // Of another class: it holds nothing, and says why.
    let mut failed = wanted(42, json!(id(1)));
    failed["CreateNodeAllocation"]["resource_class"] = json!("other");
    scenario.done(failed)?;
    scenario.row(json!({"UpdateNodeAllocation": {
        "id": id(41), "project": id(1), "lock": "server", "name": "node",
        "extra": {"key": "value"},
    }}))?;
    scenario.row(json!({"DeleteNodeAllocation": {"id": id(41), "project": id(1)}}))?;
    scenario.done(json!({"DeleteNodeAllocation": {"id": id(42)}}))
}
