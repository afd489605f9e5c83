//! Rows of switches for their operators: ports, sessions, differences, plans, hops.

use proto_public::metalmesh::admin::v1::{
    FabricCounters, FabricDifference, FabricHop, FabricOptics, FabricPlace, FabricPlanned,
    FabricPort, FabricPortState, FabricSession,
};

use crate::output::TableRow;
use crate::text::{age, bytes, enum_text, or_dash};

use super::row;

row!(FabricPort, "metalmesh.admin.v1.FabricPort", |p| [
    "port": p.name.clone(), "machine": or_dash(p.machine.clone()),
    "desired": desired(p), "observed": observed(p),
    "rx": counted(p, |c| bytes(c.rx_bytes)), "tx": counted(p, |c| bytes(c.tx_bytes)),
    "errors": counted(p, |c| format!("{}/{}", c.rx_errors, c.tx_errors)),
    "drops": counted(p, |c| format!("{}/{}", c.rx_drops, c.tx_drops)),
    "optics": p.optics.as_ref().map_or_else(|| NOT_REPORTED.to_owned(), optics),
    "neighbours": or_dash(p.neighbours.iter().map(|heard| heard.system_name.clone())
        .filter(|name| !name.is_empty()).collect::<Vec<_>>().join(",")),
    "problem": or_dash(p.problem.clone()),
], wide [
    "announces": or_dash(p.desired.as_ref().map(|desired| desired.prefixes.join(","))
        .unwrap_or_default()),
    "packets": counted(p, |c| format!("{}/{}", c.rx_packets, c.tx_packets)),
]);

/// The text for numbers that no report has.
const NOT_REPORTED: &str = "not reported";

fn counted(port: &FabricPort, show: impl Fn(&FabricCounters) -> String) -> String {
    let counters = port.counters.as_ref();
    counters.map_or_else(|| NOT_REPORTED.to_owned(), show)
}

fn optics(of: &FabricOptics) -> String {
    let power = |hundredths: i32| format!("{:.2}", f64::from(hundredths) / 100.0);
    format!(
        "{} {} rx {} dBm tx {} dBm {} °C",
        of.vendor,
        of.part,
        power(of.rx_power),
        power(of.tx_power),
        of.temperature
    )
}

fn desired(port: &FabricPort) -> String {
    let Some(state) = &port.desired else {
        return "-".into();
    };
    format!("{} {}", place(state), up(state.admin_up))
}

fn observed(port: &FabricPort) -> String {
    let Some(state) = &port.observed else {
        return NOT_REPORTED.into();
    };
    let carrier = match state.oper_up {
        Some(false) if state.admin_up => ", no carrier",
        _ => "",
    };
    format!("{} {}{carrier}", place(state), up(state.admin_up))
}

fn up(is_up: bool) -> &'static str {
    if is_up { "up" } else { "down" }
}

/// A place in words, with its VNI.
pub(crate) fn place(state: &FabricPortState) -> String {
    let vni = state.vni;
    match state.place() {
        FabricPlace::Unspecified => "-".into(),
        FabricPlace::Isolated => "isolated".into(),
        FabricPlace::Segment => format!("segment {vni}"),
        FabricPlace::Vrf if vni == 0 => "unknown VRF".into(),
        FabricPlace::Vrf => format!("VRF {vni}"),
        FabricPlace::Underlay => "underlay".into(),
        FabricPlace::Other => "foreign device".into(),
    }
}

row!(FabricSession, "metalmesh.admin.v1.FabricSession", |s| [
    "vrf": s.vrf.clone(), "neighbour": s.neighbour.clone(), "family": s.family.clone(),
    "as": if s.remote_asn == 0 { "-".to_owned() } else { s.remote_asn.to_string() },
    "state": s.state.clone(), "since": age(s.since.as_ref()),
    "received": s.prefixes_received.to_string(), "sent": s.prefixes_sent.to_string(),
    "last error": or_dash(s.last_error.clone()),
], wide ["came up": s.established.to_string()]);

row!(FabricDifference, "metalmesh.admin.v1.FabricDifference", |d| [
    "switch": d.switch.clone(), "object": or_dash(d.object.clone()),
    "field": or_dash(d.field.clone()), "wanted": or_dash(d.wanted.clone()),
    "seen": or_dash(d.seen.clone()), "since": age(d.since.as_ref()),
    "state": enum_text("metalmesh.admin.v1.FabricDifferenceState", d.state),
    "reason": or_dash(d.reason.clone()),
], wide ["attempts": d.attempts.to_string()]);

row!(FabricPlanned, "metalmesh.admin.v1.FabricPlanned", |p| [
    "switch": p.switch.clone(), "object": p.object.clone(), "field": p.field.clone(),
    "before": or_dash(p.before.clone()), "after": or_dash(p.after.clone()),
], wide []);

row!(FabricHop, "metalmesh.admin.v1.FabricHop", |h| [
    "": if h.stops { "✗" } else { "→" }, "hop": h.kind.clone(), "at": h.at.clone(),
    "detail": h.detail.clone(),
], wide []);
