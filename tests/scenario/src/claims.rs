//! Pools, hosts and claims, from the first policy to the last wipe.

use anyhow::{Context, Result};
use control_state::{Availability, Claim, Machine, Phase};
use serde_json::{Value, json};

use crate::catalog::{IMAGE, PARTITION};
use crate::fleet::{heard, machine};
use crate::life::open_order;
use crate::scenario::{Scenario, id};

const HOUR_MS: u64 = 3_600_000;
/// Number of the id of the claim that is installed.
const CLAIM: u128 = 40;

pub(crate) fn rows(scenario: &mut Scenario<'_>, machines: u32) -> Result<()> {
    let free = free_machines(scenario, machines);
    let [first, second, ..] = free[..] else {
        anyhow::bail!("fewer than two machines are free");
    };
    pools(scenario, first)?;
    claim(scenario, first)?;
    power(scenario)?;
    hosts(scenario, second)?;
    scenario.row(json!({"DeleteClaim": {"id": id(CLAIM), "project": id(1), "epoch": 1}}))
}

/// Numbers of machines that can be claimed, the last ones first.
fn free_machines(scenario: &Scenario<'_>, machines: u32) -> Vec<u32> {
    let is_free = |number: &u32| {
        let id = machine(*number).parse().ok();
        let found = id.and_then(|id| scenario.tables().get::<Machine>(&id));
        found.is_some_and(|machine| {
            machine.phase == Phase::Waiting
                && machine.allocation.is_none()
                && machine.condition.state == Availability::Available
        })
    };
    (1..=machines).rev().filter(is_free).collect()
}

fn policy(name: &str) -> Value {
    json!({
        "name": name, "allow_all": false, "projects": [id(1)], "pattern": "p-.*",
        "labels": [{"name": "tier", "value": "gold"}], "priority_max": 5,
    })
}

fn pool(name: &str) -> Value {
    json!({"SetPool": {
        "id": name, "expected": 0, "labels": {"key": "value"}, "description": "text",
        "policies": [policy("gold")], "published": ["kind", "rack/*"], "floor": "erase",
        "reuse_max_ms": HOUR_MS, "on_revoke": {"evict": {"grace_ms": HOUR_MS}},
    }})
}

fn host(number: u32) -> Value {
    json!({"SetPoolHost": {
        "machine": machine(number), "expected": 0, "pool": "shared",
        "labels": {"kind": "medium"}, "taints": [{"key": "gpu", "value": "a"}], "domain": "a",
        "only": [policy("gold")], "cordon": null,
    }})
}

fn pools(scenario: &mut Scenario<'_>, number: u32) -> Result<()> {
    scenario.row(json!({"SetProjectLabels": {
        "project": id(1), "alias": "p-acme", "labels": {"tier": "gold"},
    }}))?;
    scenario.row(pool("shared"))?;
    scenario.done(pool("empty"))?;
    scenario.row(json!({"DeletePool": {"id": "empty"}}))?;
    scenario.row(host(number))?;
    let hold = |is_held: bool| {
        json!({"HoldHost": {
            "machine": machine(number), "actor": "remediation", "key": "job-1",
            "is_held": is_held, "reason": "text",
        }})
    };
    scenario.row(hold(true))?;
    scenario.done(hold(false))
}

/// An intent with something of everything.
fn spec(image: &Value) -> Value {
    let selector = json!({
        "labels": {"kind": "medium"},
        "terms": [{"key": "rack/row", "op": "not_in", "values": ["9"]}],
    });
    json!({
        "pools": ["shared"], "selector": selector,
        "preferred": [{"weight": 10, "selector": selector}],
        "tolerations": [{"key": "gpu", "value": "a"}],
        "domain": {"name": "a", "required": true}, "priority": 3,
        "reuse": {"key": "workers", "required": false, "keep_ms": 60_000}, "spread": "workers",
        "on_lost": "rebind", "paused": false, "powered_on": true, "image": image,
        "layout": "default", "hostname": "host", "networks": [{"network": "private", "ips": []}],
        "ssh_public_keys": ["ssh-ed25519 AAAA me"], "userdata": "text",
    })
}

/// A claim up to its running system.
fn claim(scenario: &mut Scenario<'_>, number: u32) -> Result<()> {
    let create = |number: u128, name: &str| {
        json!({"CreateClaim": {
            "id": id(number), "project": id(1), "name": name, "labels": {"key": "value"},
            "spec": spec(&json!(IMAGE)), "adopt": null,
        }})
    };
    scenario.row(create(CLAIM, "host"))?;
    scenario.done(create(CLAIM + 1, "waits"))?;
    let key = id(CLAIM).parse().context("the id of a claim")?;
    let claim = scenario.tables().get::<Claim>(&key).cloned();
    let binding = claim.and_then(|claim| claim.binding.clone());
    let allocation = binding.and_then(|binding| binding.allocation);
    let allocation = allocation.context("the claim was not installed")?;
    let now = scenario.after(0);
    let machine = machine(number);
    scenario.done(json!({"MachineEvent": {
        "id": machine, "kind": "Installing", "message": "text", "time": now,
    }}))?;
    scenario.done(json!({"InstallDone": {
        "id": machine, "allocation": allocation, "error": null, "step": "text",
        "retryable": false, "log_tail": "text", "console_password": "secret",
        "primary_disk": "/dev/vda",
    }}))?;
    let order = open_order(scenario).context("no order to boot the disk")?;
    scenario.done(json!({"BmcOrderDone": {"id": order, "partition": PARTITION}}))?;
    scenario.done(json!({"MachineEvent": {
        "id": machine, "kind": "BootingNewKernel", "message": "text", "time": now,
    }}))?;
    let key = machine.parse().context("the id of a machine")?;
    let found = scenario.tables().get::<Machine>(&key);
    let vni = found.and_then(|found| found.allocation.as_ref()?.tenant_vrf());
    let leaf = format!("leaf{}", (number - 1) / 40);
    scenario.done(heard(
        &leaf,
        vni.context("no segment")?,
        [number].into_iter(),
    ))?;
    scenario.done(json!({"PhoneHome": {
        "id": machine, "project": id(1), "message": "text", "time": now,
    }}))
}

fn power(scenario: &mut Scenario<'_>) -> Result<()> {
    let mine = json!({"id": id(CLAIM), "project": id(1), "epoch": 1});
    let with = |more: Value| {
        let mut all = mine.clone();
        if let (Some(all), Some(more)) = (all.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        all
    };
    scenario.row(json!({"RebootClaim": with(json!({"request": "r-1", "mode": "hard"}))}))?;
    scenario.row(json!({"HoldClaim": with(json!({
        "key": "job-1", "is_held": true, "reason": "text",
    }))}))?;
    scenario.row(json!({"UpdateClaim": with(json!({
        "expected": 1, "spec": spec(&json!(IMAGE)), "labels": {"key": "other"},
    }))}))
}

/// A host that is wiped again, and one that leaves its pool.
fn hosts(scenario: &mut Scenario<'_>, number: u32) -> Result<()> {
    let mut cordoned = host(number);
    cordoned["SetPoolHost"]["cordon"] = json!("text");
    scenario.done(cordoned)?;
    scenario.row(json!({"CleanHost": {"machine": machine(number)}}))?;
    scenario.row(json!({"RemovePoolHost": {"machine": machine(number), "force": true}}))
}
