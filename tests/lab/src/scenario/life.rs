//! A machine's life: from the rack to the pool, to a tenant, and back.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::events::newest;
use super::setup::{COMMANDLINE_WORD, DNS_SERVER, IMAGE, NTP_SERVER, PROVISIONING_VNI, SIZE};
use super::{Site, each};
use crate::cli::text;
use crate::datacentre::DataCentre;
use crate::machine::Machine;
use crate::process::output;
use crate::services::{PARTITION, SWITCH};
use crate::topology::port;
use crate::wait::wait_for;

const BMC_FOUND: Duration = Duration::from_secs(60);
const TO_WAITING: Duration = Duration::from_secs(240);
const INSTALL: Duration = Duration::from_secs(420);
const SSH_UP: Duration = Duration::from_secs(120);
const BACK: Duration = Duration::from_secs(360);
const PORT: Duration = Duration::from_secs(20);
/// Proof that a disk was wiped: something only this lab has written.
const MARKER_FILE: &str = "/home/metal/secret";
/// What the tenant wants done at the first boot, and the proof that it was.
const USERDATA: &str =
    "#cloud-config\nwrite_files:\n- path: /etc/told-by-tenant\n  content: by cloud-init\n";
const USERDATA_FILE: &str = "/etc/told-by-tenant";

/// An allocated machine.
#[derive(Clone, Debug)]
pub(crate) struct Allocated<'a> {
    /// What the tenant calls it.
    pub(crate) name: String,
    pub(crate) uuid: String,
    pub(crate) address: String,
    pub(crate) hardware: &'a Machine,
}

/// All machines, from powered off to waiting.
pub(crate) fn machines_wait(lab: &DataCentre) -> Result<()> {
    let admin = &lab.people.admin;
    let bmc_log = lab.record.log("bmc1")?;
    lab.time
        .step("BMC agent finds the machines", &bmc_log, || {
            wait_for("all machines known by their BMCs", BMC_FOUND, || {
                let known = admin.json("machine ls")?;
                Ok((known.as_array().map_or(0, Vec::len) == lab.machines.len()).then_some(()))
            })
        })?;
    lab.time
        .step("admin: network boot and power on, by BMC", &bmc_log, || {
            for machine in &lab.machines {
                admin.run(&format!("machine power {} pxe", machine.uuid))?;
                admin.run(&format!("machine power {} on", machine.uuid))?;
            }
            lab.machines.iter().try_for_each(|machine| {
                wait_for(&format!("power of {}", machine.name), BMC_FOUND, || {
                    Ok(machine.status()?.on.then_some(()))
                })
            })
        })?;
    lab.time.step(
        "machines boot, register and wait",
        &lab.serial_log(1),
        || {
            wait_for("waiting machines", TO_WAITING, || {
                let waiting = lab
                    .watch()?
                    .iter()
                    .filter(|m| newest(m) == "waiting")
                    .count();
                Ok((waiting == lab.machines.len()).then_some(()))
            })?;
            lab.machines
                .iter()
                .try_for_each(booted_what_the_partition_names)
        },
    )
}

/// The kernel that runs was started with the partition's command line. Its files come from the
/// partition's URLs, as pixie's configuration names none that exist.
fn booted_what_the_partition_names(machine: &Machine) -> Result<()> {
    let log = std::fs::read(&machine.serial_log)?;
    ensure!(
        String::from_utf8_lossy(&log).contains(COMMANDLINE_WORD),
        "{} runs without the partition's command line",
        machine.name
    );
    Ok(())
}

/// Tenant A gets every machine and has Debian on it. The last one is waited for by the command
/// line itself, the others by their events.
pub(crate) fn allocate<'a>(lab: &'a DataCentre, site: &Site) -> Result<Vec<Allocated<'a>>> {
    let title = "tenant A: allocates; installed, booted from disk, phoned home";
    lab.time.step(title, &lab.serial_log(1), || {
        let last = lab.machines.len();
        let allocated = (1..=last)
            .map(|number| allocate_one(lab, site, number, number == last))
            .collect::<Result<Vec<_>>>()?;
        wait_for("all machines phoned home", INSTALL, || {
            let machines = lab.watch()?;
            let home = |m: &Allocated<'_>| {
                by_uuid(&machines, &m.uuid).is_some_and(|m| newest(m) == "phoned home")
            };
            Ok(allocated.iter().all(home).then_some(()))
        })?;
        Ok(allocated)
    })
}

fn allocate_one<'a>(
    lab: &'a DataCentre,
    site: &Site,
    number: usize,
    wait: bool,
) -> Result<Allocated<'a>> {
    let name = format!("web{number}");
    let userdata = site.ssh_key.with_file_name("userdata");
    std::fs::write(&userdata, USERDATA)?;
    let line = format!(
        "machine create --name {name} --hostname {name} --partition {PARTITION} --size {SIZE} \
         --image {IMAGE} --filesystem-layout default --network {} --ssh-key {}.pub --userdata {}",
        site.network_a,
        site.ssh_key.display(),
        userdata.display()
    );
    let tenant = &lab.people.tenant_a;
    let machine = if wait {
        let tell = |line: &str| lab.time.note(&format!("{name} {}", line.trim()));
        tenant.watch(&format!("{line} --wait"), tell)?
    } else {
        tenant.json(&line)?
    };
    let uuid = text(&machine, "/uuid")?.to_owned();
    let address = text(&machine, "/allocation/networks/0/ips/0")?.to_owned();
    let hardware = lab
        .machine(&uuid)
        .context("control gave a machine that is not there")?;
    lab.time
        .note(&format!("{name} is {}, {address}", hardware.name));
    Ok(Allocated {
        name,
        uuid,
        address,
        hardware,
    })
}

fn by_uuid<'a>(machines: &'a [Value], uuid: &str) -> Option<&'a Value> {
    machines
        .iter()
        .find(|m| m.get("uuid").and_then(Value::as_str) == Some(uuid))
}

/// Who sees the machines, and who does not.
pub(crate) fn only_the_tenant_sees(lab: &DataCentre, machines: &[Allocated<'_>]) -> Result<()> {
    let (tenant_a, tenant_b) = (&lab.people.tenant_a, &lab.people.tenant_b);
    lab.time.step(
        "tenant A sees them, tenant B sees nothing",
        lab.control.log(),
        || {
            for line in tenant_a.run("machine ls")?.lines() {
                lab.time.note(line);
            }
            let own = tenant_a.json("machine ls")?;
            let own = own.as_array().map(Vec::as_slice).unwrap_or_default();
            let other = tenant_b.json("machine ls")?;
            ensure!(
                other.as_array().is_some_and(Vec::is_empty),
                "tenant B sees {other}"
            );
            for machine in machines {
                let (name, uuid) = (&machine.name, &machine.uuid);
                ensure!(by_uuid(own, uuid).is_some(), "tenant A does not see {name}");
                tenant_b.refused(&format!("machine show {uuid}"), "not found")?;
            }
            Ok(())
        },
    )
}

/// The tenant's laptop reaches a machine with the tenant's key.
pub(crate) fn reach_by_ssh(lab: &DataCentre, site: &Site, machine: &Allocated<'_>) -> Result<()> {
    let title = format!("tenant A: SSH to {}", machine.name);
    lab.time.step(&title, &machine.hardware.serial_log, || {
        let hostname = wait_for("SSH", SSH_UP, || {
            ssh(lab, site, machine, "hostname").map(Some)
        })?;
        ensure!(
            hostname.trim() == machine.name,
            "the host name is {hostname:?}"
        );
        let about =
            "uname -sr; uptime -p; id -un; [ -d /sys/firmware/efi ] && echo UEFI || echo BIOS";
        let about = ssh(lab, site, machine, about)?;
        lab.time.note(&about.trim().replace('\n', ", "));
        wait_for("user data taken", SSH_UP, || {
            let told = ssh(lab, site, machine, &format!("cat {USERDATA_FILE}"))?;
            Ok((told.trim() == "by cloud-init").then_some(()))
        })?;
        lab.time.note("cloud-init has done what the user data says");
        asks_the_partitions_servers(lab, site, machine)?;
        let marker = marker(lab, machine);
        ssh(
            lab,
            site,
            machine,
            &format!("echo {marker} > {MARKER_FILE} && sync"),
        )?;
        wait_for("the marker on the disk", SSH_UP, || {
            Ok(machine
                .hardware
                .disks_hold(marker.as_bytes())?
                .then_some(()))
        })?;
        lab.time.note(&format!(
            "{} MiB on its disk",
            machine.hardware.disks_used() >> 20
        ));
        Ok(())
    })
}

/// The installed system knows the partition's name server and time server, and no others.
fn asks_the_partitions_servers(
    lab: &DataCentre,
    site: &Site,
    machine: &Allocated<'_>,
) -> Result<()> {
    let names = ssh(lab, site, machine, "resolvectl dns")?;
    ensure!(names.contains(DNS_SERVER), "name servers: {names}");
    let times = ssh(lab, site, machine, "chronyc -n -c sources")?;
    let servers: Vec<_> = times.lines().filter_map(|l| l.split(',').nth(2)).collect();
    ensure!(servers == [NTP_SERVER], "time servers: {times}");
    lab.time.note(&format!(
        "asks {DNS_SERVER} for names, {NTP_SERVER} for the time"
    ));
    Ok(())
}

/// The machines come back to the pool, clean.
pub(crate) fn free(lab: &DataCentre, site: &Site, machines: &[Allocated<'_>]) -> Result<()> {
    let log = lab.serial_log(1);
    lab.time
        .step("tenant A: frees; wiped, waiting again", &log, || {
            lab.watch()?;
            for machine in machines {
                lab.people
                    .tenant_a
                    .run(&format!("machine free {}", machine.uuid))?;
            }
            let mut left = vec![false; machines.len()];
            wait_for("the machines in the pool", BACK, || {
                let seen = lab.watch()?;
                let mut back = 0;
                for (machine, left) in machines.iter().zip(&mut left) {
                    let event = newest(by_uuid(&seen, &machine.uuid).context("a machine is gone")?);
                    *left |= event != "phoned home";
                    back += usize::from(*left && event == "waiting");
                }
                Ok((back == machines.len()).then_some(()))
            })
        })?;
    lab.time
        .step("disks are empty, ports are back", lab.control.log(), || {
            each(machines, |machine| is_clean(lab, site, machine))
        })
}

fn is_clean(lab: &DataCentre, site: &Site, machine: &Allocated<'_>) -> Result<()> {
    let (name, hardware) = (&machine.name, machine.hardware);
    let marker = marker(lab, machine);
    if hardware.disks_hold(marker.as_bytes())? {
        bail!("the old tenant's data is still on the disk of {name}");
    }
    lab.time.note(&format!(
        "{}: {} MiB on its disk",
        hardware.name,
        hardware.disks_used() >> 20
    ));
    port_is_in(lab, hardware.number, PROVISIONING_VNI)?;
    if ssh(lab, site, machine, "true").is_ok() {
        bail!("the old tenant still reaches {name}");
    }
    lab.people
        .tenant_a
        .refused(&format!("machine show {}", machine.uuid), "not found")
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

/// A word that is nowhere but on this machine of this lab.
fn marker(lab: &DataCentre, machine: &Allocated<'_>) -> String {
    format!(
        "metalmesh-lab-{}-secret-of-{}",
        lab.record.state().id,
        machine.name
    )
}

/// Runs a command on the machine, as the tenant would.
pub(crate) fn ssh(
    lab: &DataCentre,
    site: &Site,
    machine: &Allocated<'_>,
    line: &str,
) -> Result<String> {
    let mut command = lab.topology.exit.command("ssh");
    let known = site.ssh_key.with_file_name("known_hosts");
    command
        .arg("-i")
        .arg(&site.ssh_key)
        .args(["-F", "/dev/null"]);
    command
        .arg("-o")
        .arg(format!("UserKnownHostsFile={}", known.display()));
    for option in [
        "BatchMode=yes",
        "ConnectTimeout=5",
        "IdentitiesOnly=yes",
        "StrictHostKeyChecking=accept-new",
    ] {
        command.args(["-o", option]);
    }
    command.arg(format!("metal@{}", machine.address)).arg(line);
    output(&mut command).context("ssh")
}
