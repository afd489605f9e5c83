//! BMCs, power and disks that fail.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::{STEP, begin, is_held, must_survive, recover, show, until, until_reason};
use crate::chassis::{Boot, Fault, PowerChange};
use crate::datacentre::DataCentre;
use crate::process::Process;
use crate::scenario::setup::{IMAGE, Site};
use crate::wait::wait_for;

pub(super) fn bmc_silent(lab: &DataCentre, _: &Site) -> Result<()> {
    let machine = lab.machines.first().context("no machine")?;
    let name = format!("bmc-{}", machine.name);
    let bmc = Process::existing(&lab.record, &name).context("no BMC")?;
    bmc.signal(Signal::SIGSTOP);
    lab.time.note("the BMC hangs");
    lab.people
        .admin
        .run(&format!("machine power {} reset", machine.uuid))?;
    let told = until_reason(lab, &machine.uuid, &["power-reset failed"]);
    bmc.signal(Signal::SIGCONT);
    told?;
    lab.time.note("the BMC answers again");
    let before = machine.status()?.powered_on;
    lab.people
        .admin
        .run(&format!("machine power {} pxe", machine.uuid))?;
    lab.people
        .admin
        .run(&format!("machine power {} cycle", machine.uuid))?;
    wait_for("the BMC obeys again", STEP, || {
        Ok((machine.status()?.powered_on > before).then_some(()))
    })?;
    until(lab, &machine.uuid, "waiting").map(|_| ())
}

pub(super) fn power_cut(lab: &DataCentre, site: &Site) -> Result<()> {
    let uuid = must_survive(lab, site, |uuid| {
        let machine = lab.machine(uuid).context("no such hardware")?;
        machine.power(PowerChange::Off)?;
        ensure!(
            super::newest(&show(lab, uuid)?) != "waiting",
            "a half-installed machine is offered"
        );
        lab.time.note("the power is cut, and comes back");
        machine.set_boot(Boot::Pxe)?;
        machine.power(PowerChange::On)
    })?;
    recover(lab, &uuid)
}

pub(super) fn wipe_fails(lab: &DataCentre, site: &Site) -> Result<()> {
    let uuid = begin(lab, site, IMAGE)?;
    until(lab, &uuid, "phoned home")?;
    let machine = lab.machine(&uuid).context("no such hardware")?;
    machine.break_it(Fault::Writes)?;
    lab.time
        .note("from the next power on, every write to its disk fails");
    lab.people.tenant_a.run(&format!("machine free {}", uuid))?;
    until_reason(lab, &uuid, &["wipe", "disk", "i/o", "input/output"])?;
    wait_for("the machine held", STEP, || {
        Ok(is_held(&show(lab, &uuid)?).then_some(()))
    })?;
    machine.break_it(Fault::None)?;
    lab.time.note("the disk is replaced");
    machine.power(PowerChange::Off)?;
    lab.people
        .admin
        .run(&format!("machine set-state {} available", uuid))?;
    machine.set_boot(Boot::Pxe)?;
    machine.power(PowerChange::On)?;
    recover(lab, &uuid)
}
