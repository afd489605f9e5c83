//! Cables that are not where somebody says: a machine lies to get a tenant's port, and a leaf
//! lies about whom it hears.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::STEP;
use crate::control::{api_url, certificate};
use crate::datacentre::DataCentre;
use crate::netns::{Namespace, cable};
use crate::process::output;
use crate::scenario::life::{self, Allocated};
use crate::scenario::setup::Site;
use crate::services::{PARTITION, SWITCH};
use crate::topology::{OTHER_SWITCH, port};
use crate::wait::wait_for;

/// What it takes a machine to count as dead, and some more: control waits five minutes.
const SILENCE: Duration = Duration::from_secs(420);
const LIAR: &str = include_str!("liar.py");
const LIAR_UUID: &str = "6f1c0bad-0000-4000-8000-525400770909";
/// Sends what a machine would say of itself by LLDP, with its address.
const FORGE: &str = "
import socket, sys
port, mac = sys.argv[1], bytes.fromhex(sys.argv[2].replace(':', ''))
tlv = lambda kind, value: (kind << 9 | len(value)).to_bytes(2, 'big') + value
body = tlv(1, b'\\x04' + mac) + tlv(2, b'\\x05eth0') + tlv(3, b'\\x00\\x78') + tlv(0, b'')
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((port, 0))
wire.send(bytes.fromhex('0180c200000e') + mac + bytes.fromhex('88cc') + body)
";

/// A machine that does not exist claims the port of a tenant's.
pub(super) fn machine_lies(lab: &DataCentre, site: &Site) -> Result<()> {
    let machines = reached(lab, site)?;
    let tenants = machines.first().context("no machine")?;
    let at = port(tenants.hardware.number);
    let token = lab.record.path("drill/infra-token")?;
    lab.people.admin.run(&format!(
        "token create --user metal-stack --infra-role editor \
         --label metalmesh.dev/partition={PARTITION} --out {}",
        token.display()
    ))?;
    let mut script = lab.people.admin.namespace.command("python3");
    script
        .args(["-c", LIAR, &api_url()])
        .arg(certificate(&lab.record)?)
        .arg(&token)
        .args([PARTITION, LIAR_UUID, SWITCH, &at]);
    output(&mut script).context("the machine that lies")?;
    lab.time.note(&format!(
        "an invented machine says that it is at {SWITCH} {at}"
    ));
    let told = disputed(lab, LIAR_UUID)?;
    ensure!(
        told.contains(&at) && told.contains(&tenants.uuid),
        "the issue does not tell both stories: {told}"
    );
    unmoved(lab, site, tenants)?;
    // The record goes as soon as the machine counts as dead; the tenant stays.
    wait_for("the end of the invented machine", SILENCE, || {
        let forgotten = lab
            .people
            .admin
            .run(&format!("machine free {LIAR_UUID} -A"));
        forgotten.map(Some)
    })?;
    unmoved(lab, site, tenants)?;
    life::free(lab, site, &machines)
}

/// Another leaf hears frames with the address of a tenant's machine, or says so.
pub(super) fn leaf_lies(lab: &DataCentre, site: &Site) -> Result<()> {
    let machines = reached(lab, site)?;
    let tenants = machines.first().context("no machine")?;
    let (leaf, host) = other_leaf(lab)?;
    let admin = &lab.people.admin;
    let agent = crate::services::other_core(&lab.record, &leaf, &lab.artefacts)?;
    agent.ticket(admin)?;
    let process = agent.start(&lab.record)?;
    let mac = &tenants.hardware.mac;
    let told = wait_for("the dispute over the cable", STEP, || {
        process.check()?;
        output(host.command("python3").args(["-c", FORGE, "eth0", mac]))?;
        issue(lab, &tenants.uuid)
    })?;
    lab.time.note(&format!("the admin reads: {told}"));
    ensure!(
        told.contains(OTHER_SWITCH) && told.contains(SWITCH),
        "the issue does not tell both stories: {told}"
    );
    let switch = admin.json(&format!("switch show {OTHER_SWITCH}"))?;
    let vrf = switch.pointer("/nics/0/vrf").and_then(Value::as_str);
    ensure!(vrf.is_none(), "the liar's port is in {vrf:?}");
    unmoved(lab, site, tenants)?;
    process.kill()?;
    admin.run(&format!("switch rm {OTHER_SWITCH} --force"))?;
    life::free(lab, site, &machines)
}

/// Machines of a tenant that are up.
fn reached<'a>(lab: &'a DataCentre, site: &Site) -> Result<Vec<Allocated<'a>>> {
    let machines = life::allocate(lab, site)?;
    for machine in &machines {
        life::reach_by_ssh(lab, site, machine)?;
    }
    Ok(machines)
}

/// A leaf beside the first one, and what hangs at its one port.
fn other_leaf(lab: &DataCentre) -> Result<(Namespace, Namespace)> {
    let leaf = lab.topology.other_leaf(&lab.record)?;
    let host = Namespace::create(&lab.record, "host9")?;
    cable(&leaf, "swp1", &host, "eth0")?;
    Ok((leaf, host))
}

/// The machine is where it was, and its tenant reaches it.
fn unmoved(lab: &DataCentre, site: &Site, machine: &Allocated<'_>) -> Result<()> {
    life::port_is_in(lab, machine.hardware.number, site.vni_a.into())?;
    life::ssh(lab, site, machine, "true").map(drop)
}

/// What an admin reads of a disputed cable of the machine, once there is one.
fn disputed(lab: &DataCentre, uuid: &str) -> Result<String> {
    let told = wait_for("the dispute over the cable", STEP, || issue(lab, uuid))?;
    lab.time.note(&format!("the admin reads: {told}"));
    Ok(told)
}

fn issue(lab: &DataCentre, uuid: &str) -> Result<Option<String>> {
    let issues = lab.people.admin.json(&format!("machine issues {uuid}"))?;
    let is_disputed = |issue: &&Value| issue.get("code").is_some_and(|it| it == "cable-disputed");
    let mut issues = issues.as_array().into_iter().flatten();
    let found = issues.find(is_disputed);
    let details = found.and_then(|issue| issue.get("details"));
    Ok(details.and_then(Value::as_str).map(str::to_owned))
}
