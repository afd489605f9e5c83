//! Machines from the first boot to the last.

use anyhow::{Context, Result};
use control_state::{BmcOrder, Machine, OrderState};
use serde_json::{Map, Value, json};

use crate::catalog::{IMAGE, PARTITION, SIZE};
use crate::claims;
use crate::fleet::{event, heard, machine, registration, seen};
use crate::scenario::{Scenario, digest, id, mac, relabelled};
use crate::tenancy::{token, without_roles};

const HOUR_MS: u64 = 3_600_000;

pub(crate) fn rows(scenario: &mut Scenario<'_>, machines: u32) -> Result<()> {
    let fresh = machines + 1;
    first_boot(scenario, fresh)?;
    bmc(scenario)?;
    tenancy(scenario, machines)?;
    firewall(scenario)?;
    claims::rows(scenario, machines)?;
    tick(scenario, machines)?;
    // Only its BMC was ever heard: a machine that gives signs of life is not deleted.
    let silent = fresh + 1;
    let readings = [reading(scenario, silent, "10.9.0.3:623")];
    scenario.row(json!({"ReportBmc": {"partition": PARTITION, "readings": readings}}))?;
    scenario.row(json!({"DeleteMachine": {"id": machine(silent)}}))
}

/// A machine that was never seen, up to its registration.
fn first_boot(scenario: &mut Scenario<'_>, number: u32) -> Result<()> {
    let op = seen(scenario, number);
    scenario.row(op)?;
    let op = json!({"IssueBootTicket": {
        "id": id(9), "machine": machine(number), "mac": mac(number), "partition": PARTITION,
        "secret": digest(3), "expires_at": scenario.after(600_000),
    }});
    scenario.row(op)?;
    scenario.row(json!({"RedeemBootTicket": {
        "id": id(9), "secret": digest(3), "machine": machine(number), "mac": mac(number),
    }}))?;
    let op = json!({"CreateMachineToken": {
        "token": machine_token(scenario, number), "machine": machine(number),
    }});
    scenario.row(op)?;
    let op = event(scenario, number, "Preparing");
    scenario.row(op)?;
    scenario.later(1);
    scenario.row(registration(number, "boot-1"))?;
    scenario.row(json!({"WipeDone": {
        "id": machine(number),
        "disks": [{"name": "/dev/vda", "serial": "s", "method": "discard"}],
    }}))
}

fn machine_token(scenario: &Scenario<'_>, number: u32) -> Value {
    let mut token = without_roles(token(scenario, 8, "pixiecore"));
    token["permissions"] = json!([]);
    token["machine_roles"] = json!({machine(number): "editor"});
    token["expires"] = json!(scenario.after(HOUR_MS));
    token
}

fn reading(scenario: &Scenario<'_>, number: u32, address: &str) -> Value {
    json!({
        "machine": machine(number), "address": address, "mac": mac(0xff00 + number),
        "interface": "ipmi", "bmc_version": "1", "bios_version": "1", "bios_vendor": "v",
        "power_state": "on", "led_state": "off", "fru": {"product_serial": "s"},
        "draw": {"metric": {}, "supplies": [{"health": "ok", "state": "on"}]},
        "error": "text", "observed_at": scenario.after(0),
    })
}

fn bmc(scenario: &mut Scenario<'_>) -> Result<()> {
    for address in ["10.9.0.1:623", "10.9.0.2:623"] {
        let readings = [reading(scenario, 1, address)];
        scenario.row(json!({"ReportBmc": {"partition": PARTITION, "readings": readings}}))?;
    }
    scenario.row(json!({"ConfirmBmc": {"machine": machine(1), "address": "10.9.0.1:623"}}))?;
    scenario.row(json!({"KeepBmcAccess": {
        "machine": machine(2), "access": {"user": "root", "sealed_password": [1]},
    }}))?;
    scenario.row(json!({"OrderBmc": {
        "machine": machine(1), "action": "led_on", "description": "text",
    }}))?;
    let order = open_order(scenario).context("no order is open")?;
    scenario.row(json!({"TakeBmcOrder": {
        "id": order, "partition": PARTITION, "stream": {"node": 1, "id": id(9)},
        "open": [id(9)],
    }}))?;
    scenario.row(json!({"BmcOrderDone": {
        "id": order, "partition": PARTITION, "error": "text", "power_state": "on",
    }}))?;
    scenario.row(json!({"DeleteBmcOrder": {"id": order}}))
}

/// The newest open order to a BMC.
pub(crate) fn open_order(scenario: &Scenario<'_>) -> Option<String> {
    let orders = scenario.tables().all::<BmcOrder>();
    let open = orders.filter(|order| order.state == OrderState::Open);
    open.map(|order| order.id.to_string()).next_back()
}

fn allocation(number: u128) -> Value {
    json!({
        "id": id(number), "project": id(1), "name": "machine", "description": "text",
        "hostname": "machine", "partition": PARTITION, "size": SIZE, "image": IMAGE,
        "layout": "default", "ssh_public_keys": ["ssh-ed25519 AAAA me"], "userdata": "text",
        "labels": {"key": "value"}, "networks": [{"network": "private", "ips": []}],
        "placement_labels": {"key": "value"}, "dns_servers": ["1.1.1.1"],
        "ntp_servers": ["ntp.example"], "seed": 0,
        "idempotency": {"key": "key", "request": digest(4)},
    })
}

/// The machine that an allocation got.
fn allocated(scenario: &Scenario<'_>, number: u128) -> Result<Machine> {
    let has = |machine: &&std::sync::Arc<Machine>| {
        let allocation = machine.allocation.as_ref();
        allocation.is_some_and(|it| it.id.to_string() == id(number))
    };
    let found = scenario.tables().all::<Machine>().find(has);
    Ok(Machine::clone(found.context("nothing is allocated")?))
}

fn tenancy(scenario: &mut Scenario<'_>, machines: u32) -> Result<()> {
    scenario.row(json!({"AllocateMachine": allocation(20)}))?;
    let machine = allocated(scenario, 20)?.id.to_string();
    let time = |scenario: &Scenario<'_>| scenario.after(0);
    let installing = json!({"MachineEvent": {
        "id": machine, "kind": "Installing", "message": "text", "time": time(scenario),
    }});
    scenario.row(installing)?;
    scenario.row(json!({"InstallDone": {
        "id": machine, "allocation": id(20), "error": null, "step": "text", "retryable": false,
        "log_tail": "text", "console_password": "secret", "primary_disk": "/dev/vda",
    }}))?;
    let order = open_order(scenario).context("no order to boot the disk")?;
    scenario.done(json!({"BmcOrderDone": {"id": order, "partition": PARTITION}}))?;
    let leaves = machines.div_ceil(40);
    for number in 0..leaves.min(1) {
        scenario.row(heard(&format!("leaf{number}"), 0, 1..=machines))?;
    }
    scenario.row(json!({"PhoneHome": {
        "id": machine, "project": id(1), "message": "text", "time": time(scenario),
    }}))?;
    scenario.row(json!({"UpdateMachine": {
        "id": machine, "lock": "server", "project": id(1), "description": "text",
        "labels": relabelled(), "ssh_public_keys": ["ssh-ed25519 AAAA me"],
    }}))?;
    scenario.row(json!({"SetMachineState": {
        "id": machine, "state": "tainted", "description": "text",
    }}))?;
    scenario.row(json!({"FreeMachine": {"id": machine, "project": id(1)}}))
}

fn firewall(scenario: &mut Scenario<'_>) -> Result<()> {
    let rule = |way: &str| json!([{"protocol": "tcp", "ports": [443], way: ["0.0.0.0/0"], "comment": "text"}]);
    let mut wanted = allocation(21);
    wanted["kind"] = json!("firewall");
    wanted["networks"] = json!([{"network": "internet"}, {"network": "private"}]);
    wanted["firewall_rules"] = json!({"egress": rule("to"), "ingress": rule("from")});
    wanted["idempotency"] = Value::Null;
    wanted["vpn"] = json!({
        "address": "https://vpn.example", "key_id": "7", "sealed_key": [1, 2],
        "expires_at": scenario.after(HOUR_MS),
    });
    scenario.row(json!({"AllocateMachine": wanted}))?;
    scenario.row(json!({"ReportVpn": {
        "allocation": id(21), "connected": true, "ips": ["100.64.0.1"],
    }}))?;
    scenario.row(json!({"ForgetVpn": {"allocation": id(21)}}))?;
    firewall_rules(scenario)
}

/// Every field of a set of rules, and every write.
fn firewall_rules(scenario: &mut Scenario<'_>) -> Result<()> {
    let firewall = allocated(scenario, 21)?.id;
    let set = json!({"target": {"firewall": firewall}, "owner": "operator"});
    let block = json!([{"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}]);
    let ports = json!([{"protocol": "TCP", "port": 80, "endPort": 81}]);
    let rule = json!({
        "name": "web", "description": "text", "action": "accept", "direction": "egress",
        "from": block, "to": block, "ports": ports, "log": true,
    });
    let ping = json!({"name": "ping", "ports": [{"protocol": "ICMP", "icmpType": 8}]});
    let names = json!({
        "name": "names", "toFQDNs": [{"matchName": "a.example"}, {"matchPattern": "*.example"}],
    });
    let content = json!({
        "operator_rules": [rule],
        "egress_policies": [names],
        "ingress_policies": [ping],
        "load_balancers": [{
            "name": "shop", "namespace": "default", "type": "LoadBalancer",
            "loadBalancerIPs": ["203.0.113.7"], "loadBalancerSourceRanges": ["0.0.0.0/0"],
            "ports": ports,
        }],
        "rate_limits": [{"networkID": "internet", "rate": 100}],
        "egress_addresses": [{"networkID": "internet", "ips": ["203.0.113.7"]}],
        "allowed_networks": {"egress": ["0.0.0.0/0"], "ingress": ["0.0.0.0/0"]},
        "log_accepted": true,
    });
    let written = |content: &Value| {
        json!({"SetFirewallRules": {
            "set": set, "content": content, "comment": "text",
        }})
    };
    scenario.row(written(&content))?;
    scenario.done(written(&json!({})))?;
    scenario.row(json!({"RollBackFirewallRules": {"set": set, "number": 1, "comment": "text"}}))?;
    scenario.row(json!({"ReportFirewall": {
        "machine": firewall, "allocation": id(21), "applied_term": 1, "applied_generation": 2,
        "applied_sets": {format!("firewall/{firewall}/operator"): 3},
        "refused_rules": [{
            "object": "cwnp egress/names", "field": "toFQDNs", "problem": "text", "remedy": "text",
        }],
        "error": "text", "agent_version": "1.0.0",
        "routes": {"wanted": 8, "observed": 8, "error": "text"},
        "update": {"phase": "failed", "wanted": "1.3.0", "error": "text"},
    }}))?;
    scenario.row(json!({"SetFirewallRelease": {
        "version": "1.3.0", "url": "https://a.example/b", "head_digest": digest(7),
    }}))?;
    scenario.row(json!({"RemoveFirewallRelease": {}}))?;
    rollout(scenario)?;
    let other = json!({"target": {"network": "private"}, "owner": "tenant"});
    let network = json!({"SetFirewallRules": {
        "set": other, "project": id(1), "content": {}, "comment": "text", "expected": 0,
    }});
    scenario.done(network)?;
    scenario.row(json!({"DeleteFirewallRules": {
        "set": other, "project": id(1), "expected": 1,
    }}))?;
    replacement(scenario)
}

/// A rollout that is taken back, and one that is complete, as no firewall of the scenario runs. Its release
/// ends.
fn rollout(scenario: &mut Scenario<'_>) -> Result<()> {
    let start = json!({"StartRollout": {
        "kind": "firewall",
        "release": {
            "version": "1.4.0", "url": "https://a.example/b", "head_digest": digest(8),
        },
        "waves": [{"agents": 1}, {"percent": 50}],
        "gate": {"healthy_for_ms": 300_000, "patience_ms": HOUR_MS, "failures_max": 1},
    }});
    scenario.row(start.clone())?;
    scenario.row(json!({"PauseRollout": {"kind": "firewall"}}))?;
    scenario.row(json!({"ResumeRollout": {"kind": "firewall", "failures_max": 2}}))?;
    scenario.row(json!({"AbortRollout": {"kind": "firewall"}}))?;
    scenario.done(start.clone())?;
    scenario.row(json!({"StepRollout": {"kind": "firewall"}}))?;
    // No boot server has reported its program: the release is the site's at once.
    let mut of_pixies = start;
    of_pixies["StartRollout"]["kind"] = json!("pixie");
    scenario.done(of_pixies)?;
    scenario.done(json!({"StepRollout": {"kind": "pixie", "silent": ["lab/pixie0"]}}))?;
    scenario.row(json!({"ClearRelease": {"kind": "firewall"}}))
}

/// A second firewall that takes the place of the first.
fn replacement(scenario: &mut Scenario<'_>) -> Result<()> {
    let mut wanted = allocation(22);
    wanted["kind"] = json!("firewall");
    wanted["networks"] = json!([{"network": "internet"}, {"network": "private"}]);
    wanted["idempotency"] = Value::Null;
    scenario.done(json!({"AllocateMachine": wanted}))?;
    let firewalls = [21, 22].map(|number| allocated(scenario, number));
    let [old, new] = firewalls;
    scenario.row(json!({"ReplaceFirewall": {
        "machine": old?.id, "project": id(1), "by": new?.id, "step": "prepare",
    }}))
}

/// The leader's own, with a word of every machine.
fn tick(scenario: &mut Scenario<'_>, machines: u32) -> Result<()> {
    scenario.later(2_000);
    let heard: Map<String, Value> = (1..=machines)
        .map(|number| (machine(number), json!(scenario.after(0))))
        .collect();
    let op = json!({"Tick": {
        "listening_since": scenario.after(0), "unobserved": [PARTITION], "heard": heard,
        "node": 1,
    }});
    scenario.row(op)
}
