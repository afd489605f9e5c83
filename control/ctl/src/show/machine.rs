//! Rows of machines, their events and the switches that they are connected to.

use proto_public::api::v2::{
    Machine, MachineProvisioningEvent, Switch, SwitchNic, SwitchNicWithMachine, SwitchWithMachines,
};

use crate::output::TableRow;
use crate::text::{age, enum_text, meta_age, moment, or_dash, show_labels};

use super::{maybe, row};

row!(Machine, "metalstack.api.v2.Machine", |m| [
    "id": m.uuid.clone(),
    "event": last_event(m),
    "when": age(m.recent_provisioning_events.as_ref().and_then(|e| e.last_event_time.as_ref())),
    "state": machine_state(m),
    "phase": label(m, "metalmesh.dev/phase").unwrap_or("-").to_owned(),
    "name": m.allocation.as_ref().map_or_else(|| "-".into(), |a| a.name.clone()),
    "project": m.allocation.as_ref().map_or_else(|| "-".into(), |a| a.project.clone()),
    "size": m.size.as_ref().map_or_else(|| "-".into(), |s| or_dash(s.id.clone())),
    "image": m.allocation.as_ref().and_then(|a| a.image.as_ref())
        .map_or_else(|| "-".into(), |i| i.id.clone()),
    "partition": m.partition.as_ref().map(|p| p.id.clone()).unwrap_or_default(),
    "ips": machine_ips(m),
], wide [
    "liveliness": m.status.as_ref()
        .map(|s| enum_text("metalstack.api.v2.MachineLiveliness", s.liveliness))
        .unwrap_or_default(),
    "hostname": m.allocation.as_ref().map_or_else(|| "-".into(), |a| a.hostname.clone()),
    "rack": or_dash(m.rack.clone()),
    "age": m.allocation.as_ref().map_or_else(|| "-".into(), |a| meta_age(a.meta.as_ref())),
    "reason": reason(m),
    "labels": show_labels(m.meta.as_ref()),
]);

/// The newest event. Of events with equal times it is the one that the server lists first.
pub(crate) fn newest(machine: &Machine) -> Option<&MachineProvisioningEvent> {
    let recent = machine.recent_provisioning_events.as_ref()?;
    let time =
        |event: &&MachineProvisioningEvent| event.time.map(|time| (time.seconds, time.nanos));
    recent.events.iter().rev().max_by_key(time)
}

/// The name of the newest event, with the trouble of the event log in parentheses.
pub(crate) fn last_event(machine: &Machine) -> String {
    let name = newest(machine).map_or_else(|| "-".into(), event_name);
    let trouble = machine
        .recent_provisioning_events
        .as_ref()
        .map_or(0, |recent| recent.state);
    let state = "metalstack.api.v2.MachineProvisioningEventState";
    match enum_text(state, trouble).as_str() {
        "-" => name,
        trouble => format!("{name} ({trouble})"),
    }
}

/// A label of the machine.
pub(crate) fn label<'a>(machine: &'a Machine, key: &str) -> Option<&'a str> {
    let labels = machine.meta.as_ref()?.labels.as_ref()?;
    labels.labels.get(key).map(String::as_str)
}

/// The phase of the machine's life cycle, and its age.
pub(crate) fn phase(machine: &Machine) -> String {
    let Some(phase) = label(machine, "metalmesh.dev/phase") else {
        return "-".into();
    };
    match label(machine, "metalmesh.dev/phase-since").and_then(|since| since.parse().ok()) {
        Some(since) => format!("{phase}, for {}", age(Some(&since))),
        None => phase.to_owned(),
    }
}

/// An event's name.
pub(crate) fn event_name(event: &MachineProvisioningEvent) -> String {
    enum_text(
        "metalstack.api.v2.MachineProvisioningEventType",
        event.event,
    )
}

/// The state that an administrator or a failure set: available, locked or tainted.
pub(crate) fn machine_state(machine: &Machine) -> String {
    let condition = machine
        .status
        .as_ref()
        .and_then(|status| status.condition.as_ref());
    condition.map_or_else(
        || "-".into(),
        |condition| enum_text("metalstack.api.v2.MachineState", condition.state),
    )
}

/// The reason of the machine's state.
pub(crate) fn reason(machine: &Machine) -> String {
    let condition = machine
        .status
        .as_ref()
        .and_then(|status| status.condition.as_ref());
    or_dash(
        condition
            .map(|condition| condition.description.clone())
            .unwrap_or_default(),
    )
}

fn machine_ips(machine: &Machine) -> String {
    let networks = machine
        .allocation
        .iter()
        .flat_map(|allocation| &allocation.networks);
    or_dash(
        networks
            .flat_map(|network| network.ips.clone())
            .collect::<Vec<_>>()
            .join(","),
    )
}

row!(MachineProvisioningEvent, "metalstack.api.v2.MachineProvisioningEvent", |e| [
    "time": moment(e.time.as_ref()), "age": age(e.time.as_ref()), "event": event_name(e),
    "message": e.message.clone(),
], wide []);

row!(Switch, "metalstack.api.v2.Switch", |s| [
    "id": s.id.clone(), "partition": s.partition.clone(), "rack": maybe(s.rack.as_ref()),
    "os": s.os.as_ref().map(|os| {
        format!("{} {}", enum_text("metalstack.api.v2.SwitchOSVendor", os.vendor), os.version)
    }).unwrap_or_default(),
    "ports up": format!("{}/{}", s.nics.iter().filter(|nic| port_actual(nic) == "up").count(),
        s.nics.len()),
    "machines": s.machine_connections.len().to_string(),
    "last sync": age(s.last_sync.as_ref().and_then(|sync| sync.time.as_ref())),
], wide [
    "address": s.management_ip.clone(),
    "agent version": s.os.as_ref().map(|os| os.metal_core_version.clone()).unwrap_or_default(),
    "last error": s.last_sync_error.as_ref().and_then(|sync| sync.error.clone())
        .unwrap_or_default(),
]);

/// The observed status of a port.
pub(crate) fn port_actual(nic: &SwitchNic) -> String {
    nic.state.as_ref().map_or_else(
        || "-".into(),
        |state| enum_text("metalstack.api.v2.SwitchPortStatus", state.actual),
    )
}

row!(SwitchWithMachines, "metalstack.api.v2.SwitchWithMachines", |s| [
    "switch": s.id.clone(), "partition": s.partition.clone(), "rack": or_dash(s.rack.clone()),
    "ports": or_dash(s.connections.iter().map(connection).collect::<Vec<_>>().join(",")),
], wide []);

/// A connection as `PORT=MACHINE`.
fn connection(of: &SwitchNicWithMachine) -> String {
    let port = of.nic.as_ref().map_or("-", |nic| nic.name.as_str());
    let machine = of
        .machine
        .as_ref()
        .map_or("-", |machine| machine.uuid.as_str());
    format!("{port}={machine}")
}
