//! Cables that are not where somebody says: a machine lies to get a tenant's port, and a leaf
//! lies about whom it hears.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::STEP;
use crate::chassis::{Boot, PowerChange};
use crate::datacentre::DataCentre;
use crate::machine::Machine;
use crate::netns::{Namespace, cable};
use crate::process::output;
use crate::scenario::life::{self, Allocated};
use crate::scenario::setup::Site;
use crate::services::SWITCH;
use crate::topology::{OTHER_SWITCH, port};
use crate::wait::wait_for;

/// What it takes a machine to count as dead, and some more: control waits five minutes.
const SILENCE: Duration = Duration::from_secs(420);
/// Number of the machine that lies, and of its port.
const LIAR: usize = 9;
/// Sends an LLDP frame (IEEE 802.1AB) by an interface, with the address, port and name of somebody.
const FORGE: &str = "
import socket, sys
interface, mac, port, name = sys.argv[1:]
mac = bytes.fromhex(mac.replace(':', ''))
tlv = lambda kind, value: (kind << 9 | len(value)).to_bytes(2, 'big') + value
body = tlv(1, b'\\x04' + mac) + tlv(2, b'\\x05' + port.encode()) + tlv(3, b'\\x00\\x78')
body += tlv(5, name.encode()) + tlv(0, b'') if name else tlv(0, b'')
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((interface, 0))
wire.send(bytes.fromhex('0180c200000e') + mac + bytes.fromhex('88cc') + body)
";
/// The address from which the forged frames of the switch come.
const FORGER: &str = "52:54:00:77:09:99";

/// A machine says that it is at the port of a tenant's: a bridge on its cable speaks as the switch,
/// and its installer tells what it hears.
pub(super) fn machine_lies(lab: &DataCentre, site: &Site) -> Result<()> {
    let machines = reached(lab, site)?;
    let tenants = machines.first().context("no machine")?;
    let at = port(tenants.hardware.number);
    let liar = Machine::describe(&lab.record, LIAR, false)?;
    let (record, topology) = (&lab.record, &lab.topology);
    let plug = topology.add_bridged_port(record, LIAR)?;
    liar.build_at(&plug, record, topology, lab.accelerator, None)?;
    liar.set_boot(Boot::Pxe)?;
    liar.power(PowerChange::On)?;
    lab.time.note(&format!(
        "{} at {SWITCH} {} says that it is at {at}",
        liar.uuid,
        port(LIAR)
    ));
    let told = wait_for("the dispute over the cable", STEP, || {
        forge(&plug.namespace, &plug.port, FORGER, &at, SWITCH)?;
        issue(lab, &liar.uuid)
    })?;
    lab.time.note(&format!("the admin reads: {told}"));
    ensure!(
        told.contains(&at) && told.contains(&tenants.uuid),
        "the issue does not tell both stories: {told}"
    );
    unmoved(lab, site, tenants)?;
    liar.power(PowerChange::Off)?;
    // The record goes as soon as the machine counts as dead; the tenant stays.
    wait_for("the end of the machine that lies", SILENCE, || {
        let line = format!("machine free {} -A", liar.uuid);
        lab.people.admin.run(&line).map(Some)
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
        forge(&host, "eth0", mac, "eth0", "")?;
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

/// Sends an LLDP frame by an interface of a namespace.
fn forge(from: &Namespace, interface: &str, mac: &str, port: &str, name: &str) -> Result<()> {
    let mut script = from.command("python3");
    script.args(["-c", FORGE, interface, mac, port, name]);
    output(&mut script).map(drop)
}

/// What an admin reads of a disputed cable of the machine, once there is one.
fn issue(lab: &DataCentre, uuid: &str) -> Result<Option<String>> {
    let issues = lab.people.admin.json(&format!("machine issues {uuid}"))?;
    let is_disputed = |issue: &&Value| issue.get("code").is_some_and(|it| it == "cable-disputed");
    let mut issues = issues.as_array().into_iter().flatten();
    let found = issues.find(is_disputed);
    let details = found.and_then(|issue| issue.get("details"));
    Ok(details.and_then(Value::as_str).map(str::to_owned))
}
