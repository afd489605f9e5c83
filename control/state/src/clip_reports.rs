//! Reports of agents are clipped to the bounds before they become commands. Otherwise the text of
//! a broken BMC, a chatty neighbour or a long error would get the whole report refused.

use crate::bounds::{clip, list_max, text_max};
use crate::firewall::command::ReportFirewall;
use crate::machine::command::BmcReading;
use crate::machine::entity::Hardware;
use crate::op::Op;
use crate::rollout::command::ReportAgent;
use crate::switch::command::ReportSwitch;
use crate::switch::entity::{Neighbour, SwitchHealth};

/// Clips texts for people and lists of neighbours to their bounds. Identifiers stay as they are: a
/// clipped one would name something else.
pub fn clip_reports(op: &mut Op) {
    match op {
        Op::MachineEvent(op) => cut("message", &mut op.message),
        Op::PhoneHome(op) => cut("message", &mut op.message),
        Op::InstallDone(op) => {
            cut_some("error", &mut op.error);
            cut("step", &mut op.step);
            cut_front("log_tail", &mut op.log_tail);
        }
        Op::WipeDone(op) => {
            let errors = op.disks.iter_mut().map(|disk| &mut disk.error);
            errors.for_each(|error| cut_some("error", error));
        }
        Op::BmcOrderDone(op) => cut_some("error", &mut op.error),
        Op::ReportBmc(op) => op.readings.iter_mut().for_each(cut_reading),
        Op::ReportSwitch(op) => clip_switch_report(op),
        Op::ReportFirewall(op) => clip_firewall_report(op),
        Op::ReportAgent(op) => clip_agent_report(op),
        Op::RegisterMachine(op) => cut_hardware(&mut op.hardware),
        _ => {}
    }
}

/// Clips a report of a switch as [`clip_reports`] does, for who compares it with the state: a report
/// over the bounds would never equal what is stored.
pub fn clip_switch_report(report: &mut ReportSwitch) {
    cut_some("error", &mut report.error);
    let ports = report.ports.values_mut();
    ports.for_each(|port| cut_neighbours(&mut port.neighbours));
    report.health.iter_mut().for_each(cut_health);
}

/// Clips a report of an agent about its program, as [`clip_switch_report`] does.
pub fn clip_agent_report(report: &mut ReportAgent) {
    cut("vendor", &mut report.version);
    cut("vendor", &mut report.phase);
    if let Some(wanted) = &mut report.wanted {
        cut("vendor", wanted);
    }
    cut_some("error", &mut report.error);
    cut_some("ailment", &mut report.ailment);
}

/// Clips a report of a firewall, as [`clip_switch_report`] does.
pub fn clip_firewall_report(report: &mut ReportFirewall) {
    cut_some("error", &mut report.error);
    report.refused_rules.truncate(list_max("refused_rules"));
    for refused in &mut report.refused_rules {
        for text in [
            &mut refused.object,
            &mut refused.field,
            &mut refused.problem,
            &mut refused.remedy,
        ] {
            cut("object", text);
        }
    }
    if let Some(version) = &mut report.agent_version {
        cut("vendor", version);
    }
    if let Some(routes) = &mut report.routes {
        cut_some("error", &mut routes.error);
    }
    if let Some(update) = &mut report.update {
        cut("vendor", &mut update.phase);
        cut_some("vendor", &mut update.wanted);
        cut_some("error", &mut update.error);
    }
    while report.applied_sets.len() > list_max("applied_sets") {
        report.applied_sets.pop_last();
    }
}

fn cut(field: &str, text: &mut String) {
    let len = clip(text, text_max(field)).len();
    text.truncate(len);
}

fn cut_some(field: &str, text: &mut Option<String>) {
    if let Some(text) = text {
        cut(field, text);
    }
}

/// Clips a log at its front: the end shows the failure.
fn cut_front(field: &str, text: &mut String) {
    let surplus = text.len().saturating_sub(text_max(field));
    text.drain(..text.ceil_char_boundary(surplus));
}

fn cut_reading(reading: &mut BmcReading) {
    let fru = &mut reading.fru;
    for text in [
        &mut reading.address,
        &mut reading.mac,
        &mut reading.interface,
        &mut reading.bmc_version,
        &mut reading.bios_version,
        &mut reading.bios_vendor,
        &mut reading.user,
        &mut reading.power_state,
        &mut reading.led_state,
        &mut fru.chassis_part_number,
        &mut fru.chassis_part_serial,
        &mut fru.board_mfg,
        &mut fru.board_mfg_serial,
        &mut fru.board_part_number,
        &mut fru.product_manufacturer,
        &mut fru.product_part_number,
        &mut fru.product_serial,
    ] {
        cut("vendor", text);
    }
    cut_some("error", &mut reading.error);
}

/// Clips the lists of a switch's condition, counting the rest, and their texts.
fn cut_health(health: &mut SwitchHealth) {
    let omit = |omitted: &mut u32, len: usize, max: usize| {
        let surplus = u32::try_from(len.saturating_sub(max)).unwrap_or(u32::MAX);
        *omitted = omitted.saturating_add(surplus);
    };
    let problems_max = list_max("problems");
    let sessions_max = list_max("sessions");
    omit(
        &mut health.problems_omitted,
        health.problems.len(),
        problems_max,
    );
    omit(
        &mut health.sessions_omitted,
        health.sessions.len(),
        sessions_max,
    );
    health.problems.truncate(problems_max);
    health.sessions.truncate(sessions_max);
    health.drift.truncate(list_max("drift"));
    for problem in &mut health.problems {
        cut("reason", &mut problem.reason);
        cut("object", &mut problem.object);
    }
    for drift in &mut health.drift {
        for text in [&mut drift.object, &mut drift.seen, &mut drift.desired] {
            cut("object", text);
        }
    }
    for session in &mut health.sessions {
        for text in [
            &mut session.vrf,
            &mut session.neighbour,
            &mut session.family,
            &mut session.state,
            &mut session.last_error,
        ] {
            cut("port_id", text);
        }
    }
}

fn cut_hardware(hardware: &mut Hardware) {
    for nic in &mut hardware.nics {
        cut_neighbours(&mut nic.neighbours);
    }
}

fn cut_neighbours(neighbours: &mut Vec<Neighbour>) {
    neighbours.truncate(list_max("neighbours"));
    for neighbour in neighbours {
        cut("port_id", &mut neighbour.port_id);
        cut("port_id", &mut neighbour.chassis_id);
        cut("port_id", &mut neighbour.system_name);
        cut("system_description", &mut neighbour.system_description);
    }
}
