//! A machine's life: from the rack to the pool, to a tenant, and back.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::Site;
use super::events::{Watcher, newest};
use super::setup::{IMAGE, PROVISIONING_VNI, SIZE};
use crate::cli::text;
use crate::datacentre::DataCentre;
use crate::process::output;
use crate::services::{PARTITION, SWITCH};
use crate::topology::port;
use crate::wait::{Fatal, wait_for};

const BMC_FOUND: Duration = Duration::from_secs(60);
const TO_WAITING: Duration = Duration::from_secs(240);
const SSH_UP: Duration = Duration::from_secs(120);
const BACK: Duration = Duration::from_secs(360);
const PORT: Duration = Duration::from_secs(20);
/// Proof that a disk was wiped: something only this lab has written.
const MARKER_FILE: &str = "/home/metal/secret";

/// An allocated machine.
#[derive(Clone, Debug)]
pub(crate) struct Allocated {
    pub uuid: String,
    pub address: String,
}

/// Both machines, from powered off to waiting.
pub(crate) fn machines_wait(lab: &DataCentre) -> Result<()> {
    let admin = &lab.people.admin;
    let bmc_log = lab.record.log("bmc1")?;
    lab.time
        .step("BMC agent finds the machines", &bmc_log, || {
            wait_for("all machines known by their BMCs", BMC_FOUND, || {
                let known = admin.json(&["machine", "ls"])?;
                Ok((known.as_array().map_or(0, Vec::len) == lab.machines.len()).then_some(()))
            })
        })?;
    lab.time
        .step("admin: network boot and power on, by BMC", &bmc_log, || {
            for machine in &lab.machines {
                admin.run(&["machine", "power", &machine.uuid, "pxe"])?;
                admin.run(&["machine", "power", &machine.uuid, "on"])?;
            }
            for machine in &lab.machines {
                wait_for(&format!("power of {}", machine.name), BMC_FOUND, || {
                    Ok(machine.status()?.on.then_some(()))
                })?;
            }
            Ok(())
        })?;
    lab.time.step(
        "machines boot, register, are wiped and wait",
        &lab.serial_log(1),
        || {
            let mut watcher = Watcher::default();
            wait_for("waiting machines", TO_WAITING, || {
                let machines = watcher.look(lab)?;
                let waiting = machines.iter().filter(|m| newest(m) == "waiting").count();
                Ok((waiting == lab.machines.len()).then_some(()))
            })
        },
    )
}

/// Tenant A gets a machine and has Debian on it.
pub(crate) fn allocate(lab: &DataCentre, site: &Site) -> Result<Allocated> {
    lab.time.step(
        "tenant A: a machine, installed and phoned home",
        &lab.serial_log(1),
        || {
            let key = format!("{}.pub", site.ssh_key.display());
            let machine = lab.people.tenant_a.watch(
                &[
                    "machine",
                    "create",
                    "--name",
                    "web",
                    "--hostname",
                    "web",
                    "--partition",
                    PARTITION,
                    "--size",
                    SIZE,
                    "--image",
                    IMAGE,
                    "--network",
                    &site.network_a,
                    "--ssh-key",
                    &key,
                    "--wait",
                ],
                |line| lab.time.note(line.trim()),
            )?;
            let uuid = text(&machine, "/uuid")?.to_owned();
            let address = text(&machine, "/allocation/networks/0/ips/0")?.to_owned();
            let name = lab.machine(&uuid).map_or("?", |m| m.name.as_str());
            lab.time.note(&format!("{name} is web, {address}"));
            Ok(Allocated { uuid, address })
        },
    )
}

/// Who sees it, and who does not.
pub(crate) fn only_the_tenant_sees_it(lab: &DataCentre, machine: &Allocated) -> Result<()> {
    lab.time.step(
        "tenant A sees it, tenant B sees nothing",
        lab.control.log(),
        || {
            let seen = |all: &Value| {
                let all = all.as_array().cloned().unwrap_or_default();
                all.iter()
                    .any(|m| m.get("uuid").and_then(Value::as_str) == Some(&machine.uuid))
            };
            let own = lab.people.tenant_a.run(&["machine", "ls"])?;
            for line in own.lines() {
                lab.time.note(line);
            }
            ensure!(
                seen(&lab.people.tenant_a.json(&["machine", "ls"])?),
                "tenant A does not see it"
            );
            let other = lab.people.tenant_b.json(&["machine", "ls"])?;
            ensure!(
                other.as_array().is_some_and(Vec::is_empty),
                "tenant B sees {other}"
            );
            lab.people
                .tenant_b
                .refused(&["machine", "show", &machine.uuid], "not found")
        },
    )
}

/// The tenant's laptop reaches the machine with the tenant's key.
pub(crate) fn reach_by_ssh(lab: &DataCentre, site: &Site, machine: &Allocated) -> Result<()> {
    lab.time
        .step("tenant A: SSH", &machine_log(lab, machine), || {
            let hostname = wait_for("SSH", SSH_UP, || {
                ssh(lab, site, machine, "hostname").map(Some)
            })?;
            ensure!(hostname.trim() == "web", "the host name is {hostname:?}");
            let about = ssh(lab, site, machine, "uname -sr; uptime -p; id -un")?;
            lab.time.note(&about.trim().replace('\n', ", "));
            let marker = marker(lab);
            ssh(
                lab,
                site,
                machine,
                &format!("echo {marker} > {MARKER_FILE} && sync"),
            )?;
            let hardware = lab.machine(&machine.uuid).context("no such hardware")?;
            wait_for("the marker on the disk", SSH_UP, || {
                Ok(hardware.disks_hold(marker.as_bytes())?.then_some(()))
            })?;
            lab.time
                .note(&format!("{} MiB on its disk", hardware.disks_used() >> 20));
            Ok(())
        })
}

/// The machine comes back to the pool, clean.
pub(crate) fn free(lab: &DataCentre, site: &Site, machine: &Allocated) -> Result<()> {
    let hardware = lab.machine(&machine.uuid).context("no such hardware")?;
    lab.time.step(
        "tenant A: frees it; it is wiped and waits again",
        &hardware.serial_log,
        || {
            let mut watcher = Watcher::default();
            watcher.look(lab)?;
            lab.people
                .tenant_a
                .run(&["machine", "free", &machine.uuid])?;
            let mut left = false;
            wait_for("the machine in the pool", BACK, || {
                let machines = watcher.look(lab)?;
                let uuid =
                    |m: &&Value| m.get("uuid").and_then(Value::as_str) == Some(&machine.uuid);
                let found = machines.iter().find(uuid).context("the machine is gone")?;
                left |= newest(found) != "phoned home";
                Ok((left && newest(found) == "waiting").then_some(()))
            })
        },
    )?;
    lab.time.step(
        "its disk is empty, its port is back",
        lab.control.log(),
        || {
            let marker = marker(lab);
            if hardware.disks_hold(marker.as_bytes())? {
                return Err(Fatal("the old tenant's data is still on the disk".into()).into());
            }
            lab.time
                .note(&format!("{} MiB on its disk", hardware.disks_used() >> 20));
            port_is_in(lab, hardware.number, PROVISIONING_VNI)?;
            if ssh(lab, site, machine, "true").is_ok() {
                bail!("the old tenant still reaches the machine");
            }
            lab.people
                .tenant_a
                .refused(&["machine", "show", &machine.uuid], "not found")
        },
    )
}

/// Waits until the kernel of the switch has the machine's port in that segment.
pub(crate) fn port_is_in(lab: &DataCentre, machine: usize, vni: u64) -> Result<()> {
    let port = port(machine);
    wait_for(&format!("{SWITCH} {port} in VNI {vni}"), PORT, || {
        let text = output(
            lab.topology
                .leaf
                .command("ip")
                .args(["-o", "link", "show", &port]),
        )?;
        Ok(text.contains(&format!(" master mmb{vni} ")).then_some(()))
    })
}

/// A word that is nowhere but in this lab.
fn marker(lab: &DataCentre) -> String {
    format!("metalmesh-lab-{}-tenant-a-secret", lab.record.state().id)
}

fn machine_log(lab: &DataCentre, machine: &Allocated) -> std::path::PathBuf {
    lab.machine(&machine.uuid)
        .map_or_else(|| lab.record.dir().join("log"), |m| m.serial_log.clone())
}

/// Runs a command on the machine, as the tenant would.
pub(crate) fn ssh(
    lab: &DataCentre,
    site: &Site,
    machine: &Allocated,
    line: &str,
) -> Result<String> {
    let mut command: Command = lab.topology.exit.command("ssh");
    let known = site.ssh_key.with_file_name("known_hosts");
    command.arg("-i").arg(&site.ssh_key);
    command
        .arg("-o")
        .arg(format!("UserKnownHostsFile={}", known.display()));
    for option in [
        "BatchMode=yes",
        "StrictHostKeyChecking=accept-new",
        "ConnectTimeout=5",
        "IdentitiesOnly=yes",
    ] {
        command.args(["-o", option]);
    }
    command
        .arg("-F")
        .arg("/dev/null")
        .arg(format!("metal@{}", machine.address))
        .arg(line);
    output(&mut command).context("ssh")
}
