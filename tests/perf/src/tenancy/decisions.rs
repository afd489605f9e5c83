//! Decisions by the rules of Ironic 39.0.0, as the facade asks for them.

use std::hint::black_box;

use anyhow::{Context as _, Result, ensure};
use control_oslo::{Credentials, PolicyFile, PolicyTarget, ironic};

use super::process_row::ProcessRow;
use crate::authz::median_mean_ns;
use crate::sample::median;

/// Longest time of the slowest rule, microseconds.
const US_MAX: f64 = 1.0;
/// Decisions of each rule and caller, in thousands.
const THOUSANDS: u32 = 100;
/// The project that owns the node, the one that leases it, and another one.
const OWNER: &str = "00000000-0000-4000-8000-0000000000a1";
const LESSEE: &str = "00000000-0000-4000-8000-0000000000a2";
const STRANGER: &str = "00000000-0000-4000-8000-0000000000a3";
const OF_ALLOCATIONS: &str = "baremetal:allocation:";

/// The rules that calls of operators and tenants ask most.
const RULES: [&str; 20] = [
    "baremetal:node:list",
    "baremetal:node:list_all",
    "baremetal:node:get",
    "baremetal:node:get:last_error",
    "baremetal:node:get:driver_info",
    "baremetal:node:create",
    "baremetal:node:update",
    "baremetal:node:update_extra",
    "baremetal:node:update_instance_info",
    "baremetal:node:set_power_state",
    "baremetal:node:set_provision_state",
    "baremetal:node:set_maintenance",
    "baremetal:node:set_boot_device",
    "baremetal:node:validate",
    "baremetal:node:vif:attach",
    "baremetal:node:traits:list",
    "baremetal:port:get",
    "baremetal:allocation:create",
    "baremetal:allocation:get",
    "baremetal:allocation:delete",
];

/// Callers with their names: those of whom the rules tell.
fn callers() -> [(&'static str, Credentials); 5] {
    let roles = ["admin", "manager", "member", "reader"];
    [
        (
            "a member of the owner",
            Credentials::project(OWNER, ["member", "reader"]),
        ),
        (
            "a manager of the lessee",
            Credentials::project(LESSEE, ["manager", "member", "reader"]),
        ),
        (
            "an administrator of another project",
            Credentials::project(STRANGER, roles),
        ),
        ("a reader of the site", Credentials::system(["reader"])),
        ("an administrator of the site", Credentials::system(roles)),
    ]
}

/// The typical decision and the slowest one.
pub(super) fn measure() -> Result<ProcessRow> {
    let policy = ironic::policy(&PolicyFile::default())?;
    let mut all = Vec::new();
    let mut slowest = (0.0, String::new());
    for rule in RULES {
        ensure!(policy.rule_id(rule).is_some(), "{rule} is no rule");
        let is_of_allocations = rule.starts_with(OF_ALLOCATIONS);
        for (who, caller) in &callers() {
            let decide = || {
                let (owner, lessee) = (black_box(Some(OWNER)), black_box(Some(LESSEE)));
                let target = match is_of_allocations {
                    true => PolicyTarget::allocation(owner),
                    false => PolicyTarget::node(owner, lessee),
                };
                let decision = policy.decide(black_box(rule), black_box(caller), &target);
                decision.is_permitted()
            };
            let us = median_mean_ns(THOUSANDS, decide)? / 1e3;
            all.push(us);
            if us > slowest.0 {
                slowest = (us, format!("{rule}, {who}"));
            }
        }
    }
    let (worst, what) = slowest;
    Ok(ProcessRow {
        name: "policy_decision_us",
        title: "policy decision, us".to_owned(),
        digits: 3,
        typical: median(&all).context("nothing was decided")?,
        worst,
        max: US_MAX,
        remark: what,
    })
}
