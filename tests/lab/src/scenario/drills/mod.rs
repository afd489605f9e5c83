//! Faults on purpose. Each ends with a reason that the admin sees, and a machine that recovers
//! or is held out of the pool.
//!
//! A drill finds a site with its machines waiting and leaves it so; they can be run one after the
//! other in one lab.

mod cables;
mod hardware;
mod images;
mod metalsmith;
mod outage;
mod tickets;
mod tutorial;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::events::newest;
use super::setup::{IMAGE, SIZE, Site};
use crate::cli::text;
use crate::datacentre::DataCentre;
use crate::services::PARTITION;
use crate::wait::wait_for;

const STEP: Duration = Duration::from_secs(240);

/// One drill.
#[derive(Clone, Copy, Debug)]
pub struct Drill {
    pub name: &'static str,
    pub about: &'static str,
    /// Whether machines have to wait before it begins.
    pub machines: bool,
    pub run: fn(&DataCentre, &Site) -> Result<()>,
}

/// Every drill, in the order they run.
pub const DRILLS: &[Drill] = &[
    Drill {
        name: "main-job",
        about: "no fault: allocate, install, reach, free",
        machines: true,
        run: super::use_machines,
    },
    Drill {
        name: "tutorial",
        about: "no fault: docs/tutorial/first-machine.md, as it is written",
        machines: true,
        run: tutorial::run,
    },
    Drill {
        name: "metalsmith",
        about: "no fault: OpenStack's metalsmith deploys a machine, by Ironic's API",
        machines: true,
        run: metalsmith::run,
    },
    Drill {
        name: "unknown-partition",
        about: "nothing joins or is allocated where there is nothing",
        machines: false,
        run: tickets::unknown_partition,
    },
    Drill {
        name: "wrong-digest",
        about: "an image that is not what it should be is not installed",
        machines: true,
        run: images::wrong_digest,
    },
    Drill {
        name: "cut-short",
        about: "an image that ends too early is not installed",
        machines: true,
        run: images::cut_short,
    },
    Drill {
        name: "too-big",
        about: "an image that does not fit the disk holds the machine",
        machines: true,
        run: images::too_big,
    },
    Drill {
        name: "bmc-silent",
        about: "an order to a BMC that does not answer ends with a reason",
        machines: true,
        run: hardware::bmc_silent,
    },
    Drill {
        name: "power-cut",
        about: "the power goes in the middle of an installation",
        machines: true,
        run: hardware::power_cut,
    },
    Drill {
        name: "control-killed",
        about: "control is killed in the middle of an installation and comes back",
        machines: true,
        run: outage::control_killed,
    },
    Drill {
        name: "wipe-fails",
        about: "a disk that cannot be wiped keeps its machine out of the pool",
        machines: true,
        run: hardware::wipe_fails,
    },
    Drill {
        name: "lying-machine",
        about: "a machine that claims a tenant's port takes nothing, and an issue tells of it",
        machines: true,
        run: cables::machine_lies,
    },
    Drill {
        name: "lying-leaf",
        about: "a leaf that says that it hears a tenant's machine moves nothing",
        machines: true,
        run: cables::leaf_lies,
    },
    Drill {
        name: "tickets",
        about: "a wrong, used, foreign or expired ticket joins nobody",
        machines: false,
        run: tickets::run,
    },
];

/// Runs drills by name, separated by commas, or "all" of them, in one lab.
///
/// # Errors
/// The step that failed, or no drill of that name.
pub fn run(lab: &DataCentre, names: &str) -> Result<()> {
    let names: Vec<&str> = names.split(',').collect();
    for name in names.iter().filter(|n| **n != "all") {
        let known = DRILLS.iter().any(|d| d.name == *name);
        ensure!(known, "no drill {name:?}; see: ./dev lab --drill list");
    }
    let is_chosen = |d: &&Drill| names.contains(&"all") || names.contains(&d.name);
    let chosen: Vec<&Drill> = DRILLS.iter().filter(is_chosen).collect();
    let site = super::setup::run(lab)?;
    if chosen.iter().any(|d| d.machines) {
        super::life::machines_wait(lab)?;
    }
    for drill in chosen {
        let title = format!("drill {}: {}", drill.name, drill.about);
        lab.time.step(&title, &lab.record.dir().join("log"), || {
            (drill.run)(lab, &site)
        })?;
    }
    Ok(())
}

/// The machine as the admin sees it.
fn show(lab: &DataCentre, uuid: &str) -> Result<Value> {
    lab.people.admin.json(&format!("machine show {uuid}"))
}

/// Tenant A begins an allocation; the machine's UUID.
fn begin(lab: &DataCentre, site: &Site, image: &str) -> Result<String> {
    let machine = lab.people.tenant_a.json(&format!(
        "machine create --name drill --partition {PARTITION} --size {SIZE} --image {image} \
         --filesystem-layout default --network {} --ssh-key {}.pub",
        site.network_a,
        site.ssh_key.display()
    ))?;
    Ok(text(&machine, "/uuid")?.to_owned())
}

/// Waits until the newest event of a machine is this one; tells all.
fn until(lab: &DataCentre, uuid: &str, event: &str) -> Result<Value> {
    wait_for(event, STEP, || {
        lab.watch()?;
        let machine = show(lab, uuid)?;
        Ok((newest(&machine) == event).then_some(machine))
    })
}

/// Waits until the admin reads one of these words as the machine's reason.
fn until_reason(lab: &DataCentre, uuid: &str, words: &[&str]) -> Result<Value> {
    wait_for(&format!("a reason with one of {words:?}"), STEP, || {
        lab.watch()?;
        let machine = show(lab, uuid)?;
        let reason = reason(&machine).to_lowercase();
        let found = words.iter().any(|w| reason.contains(w));
        if found {
            lab.time
                .note(&format!("the admin reads: {}", reason.trim()));
        }
        Ok(found.then_some(machine))
    })
}

/// Everything that tells an admin why a machine is not well.
fn reason(machine: &Value) -> String {
    let part = |path: &str| {
        machine
            .pointer(path)
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let last_error = "/recentProvisioningEvents/lastErrorEvent/message";
    [part("/status/condition/description"), part(last_error)].join(" ")
}

/// Held: marked, and not offered.
fn is_held(machine: &Value) -> bool {
    let state = machine
        .pointer("/status/condition/state")
        .and_then(Value::as_str);
    state.is_some_and(|s| s.ends_with("TAINTED")) && newest(machine) != "waiting"
}

/// Gives a machine back and, when it is held, releases it; waits until it is in the pool.
fn recover(lab: &DataCentre, uuid: &str) -> Result<()> {
    let machine = show(lab, uuid)?;
    if machine.get("allocation").is_some_and(|a| !a.is_null()) {
        lab.people.tenant_a.run(&format!("machine free {uuid}"))?;
    }
    if is_held(&machine) {
        lab.people
            .admin
            .run(&format!("machine set-state {uuid} available"))?;
    }
    wait_for("the machine back in the pool", STEP, || {
        lab.watch()?;
        let machine = show(lab, uuid)?;
        let free = machine.get("allocation").is_none_or(Value::is_null);
        Ok((free && newest(&machine) == "waiting" && !is_held(&machine)).then_some(()))
    })
}

/// An allocation with an image that must fail, told with one of these words; then recovered.
fn must_fail(lab: &DataCentre, site: &Site, image: &str, words: &[&str]) -> Result<()> {
    let uuid = begin(lab, site, image)?;
    until_reason(lab, &uuid, words)?;
    let held = wait_for("the machine held", STEP, || {
        let machine = show(lab, &uuid)?;
        Ok(is_held(&machine).then_some(machine))
    })?;
    ensure!(
        newest(&held) != "phoned home",
        "it was installed all the same"
    );
    recover(lab, &uuid)
}

/// An installation that must end well in spite of `fault`, which comes once it writes to disk.
fn must_survive(
    lab: &DataCentre,
    site: &Site,
    fault: impl FnOnce(&str) -> Result<()>,
) -> Result<String> {
    let uuid = begin(lab, site, IMAGE)?;
    until(lab, &uuid, "installing")?;
    let hardware = lab.machine(&uuid).context("no such hardware")?;
    wait_for("an image on its way to the disk", STEP, || {
        Ok((hardware.disks_used() > 64 << 20).then_some(()))
    })?;
    fault(&uuid)?;
    until(lab, &uuid, "phoned home")?;
    Ok(uuid)
}
