//! Switches with desired beside observed state: differences, forecasts, traces.

use control_state::life::{PortIntent, PortPlace, port_intents};
use control_state::{
    self as state, Difference, DifferenceState, EvpnTables, Neighbour, ObservedPlace, PacketTrace,
    PlannedChange, PortObserved, RoutingSession, Tables, differences, query,
};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_types::{SwitchId, VNI_MAX, Vni};

use super::time;

/// A switch with its ports and differences, without what only the leader knows.
pub fn fabric_switch(tables: &Tables, switch: &state::Switch) -> mesh::FabricSwitch {
    let health = &switch.health;
    let differences = fabric_differences(tables, switch);
    let is_draining = is_draining(tables, switch, differences.len());
    let ports = port_intents(tables, switch).into_iter();
    let ports = ports.map(|intent| port(tables, switch, &intent, &differences));
    let ports = ports.collect();
    mesh::FabricSwitch {
        id: switch.id.to_string(),
        partition: switch.partition.to_string(),
        rack: switch.rack.clone(),
        drained_at: switch.drain.as_ref().and_then(|drain| time(drain.at)),
        draining: is_draining,
        reported_at: time(switch.sync.at),
        applied_generation: switch.sync.applied_generation,
        ports,
        differences,
        differences_omitted: health.problems_omitted,
        sessions: health.sessions.iter().map(session).collect(),
        sessions_omitted: health.sessions_omitted,
        evpn: health.evpn.map(evpn),
        counted_at: None,
        connected: None,
    }
}

/// A switch in a list, without what only the leader knows.
pub fn fabric_summary(tables: &Tables, switch: &state::Switch) -> mesh::FabricSummary {
    let found = differences(tables, switch);
    let open = found
        .iter()
        .filter(|one| one.state != DifferenceState::Healed);
    let health = &switch.health;
    let up = health.sessions.iter().filter(|one| one.is_established());
    mesh::FabricSummary {
        id: switch.id.to_string(),
        drained_at: switch.drain.as_ref().and_then(|drain| time(drain.at)),
        draining: is_draining(tables, switch, found.len()),
        reported_at: time(switch.sync.at),
        connected: None,
        differences: count(open.count()).saturating_add(health.problems_omitted),
        sessions: count(health.sessions.len()).saturating_add(health.sessions_omitted),
        sessions_up: count(up.count()),
    }
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// `true` if the switch reports that its traffic is moved away. Without EVPN nothing but ports
/// shows a drain.
fn is_draining(tables: &Tables, switch: &state::Switch, differences: usize) -> bool {
    let partition = tables.get::<state::Partition>(&switch.partition);
    match partition.is_some_and(|partition| partition.has_evpn()) {
        true => switch.health.is_draining,
        false => switch.drain.is_some() && differences == 0,
    }
}

/// All that is not as desired on a switch.
pub fn fabric_differences(tables: &Tables, switch: &state::Switch) -> Vec<mesh::FabricDifference> {
    let found = differences(tables, switch).into_iter();
    found.map(|found| difference(&switch.id, found)).collect()
}

/// A field that a change would change.
pub fn fabric_planned(change: PlannedChange) -> mesh::FabricPlanned {
    mesh::FabricPlanned {
        switch: change.switch.to_string(),
        object: change.object,
        field: change.field.to_owned(),
        before: change.before,
        after: change.after,
    }
}

/// The way of a packet.
pub fn fabric_trace(trace: PacketTrace) -> mesh::FabricTrace {
    let hops = trace.hops.into_iter().map(|hop| mesh::FabricHop {
        kind: hop.kind.to_owned(),
        at: hop.at,
        detail: hop.detail,
        stops: hop.stops,
    });
    mesh::FabricTrace {
        hops: hops.collect(),
        arrives: trace.arrives,
        verdict: trace.verdict,
    }
}

fn port(
    tables: &Tables,
    switch: &state::Switch,
    intent: &PortIntent,
    differences: &[mesh::FabricDifference],
) -> mesh::FabricPort {
    let object = format!("port {}", intent.name);
    let healed = mesh::FabricDifferenceState::Healed;
    let mut open = differences.iter().filter(|found| found.state() != healed);
    let problem = open.find(|found| found.object == object);
    let port = switch.ports.get(&intent.name);
    let seen = port.and_then(|port| port.observed.as_ref());
    let machine = query::port_machine(tables, &switch.id, &intent.name);
    let heard = seen.iter().flat_map(|seen| &seen.neighbours);
    mesh::FabricPort {
        name: intent.name.clone(),
        machine: machine
            .map(|machine| machine.id.to_string())
            .unwrap_or_default(),
        desired: Some(desired(intent)),
        observed: seen.map(observed),
        neighbours: heard.map(neighbour).collect(),
        counters: None,
        optics: None,
        problem: problem
            .map(|found| found.reason.clone())
            .unwrap_or_default(),
    }
}

fn desired(intent: &PortIntent) -> mesh::FabricPortState {
    let place = match intent.place {
        PortPlace::Segment if intent.vni == Vni::NONE => mesh::FabricPlace::Isolated,
        PortPlace::Segment | PortPlace::Bridged => mesh::FabricPlace::Segment,
        PortPlace::Routed => mesh::FabricPlace::Vrf,
        PortPlace::Underlay => mesh::FabricPlace::Underlay,
    };
    let filter = intent.filter.as_ref();
    let prefixes = filter.iter().flat_map(|filter| filter.prefixes.iter());
    let vnis = filter.iter().flat_map(|filter| filter.vnis.iter());
    mesh::FabricPortState {
        admin_up: intent.admin_up,
        oper_up: None,
        place: place.into(),
        vni: intent.vni.get(),
        asn: filter.map_or(0, |filter| filter.asn.0),
        prefixes: prefixes.map(ToString::to_string).collect(),
        evpn_vnis: vnis.copied().collect(),
    }
}

fn observed(seen: &PortObserved) -> mesh::FabricPortState {
    let place = match seen.place {
        ObservedPlace::Segment if seen.vni == Vni::NONE => mesh::FabricPlace::Isolated,
        ObservedPlace::Segment => mesh::FabricPlace::Segment,
        ObservedPlace::Routed => mesh::FabricPlace::Vrf,
        ObservedPlace::Underlay => mesh::FabricPlace::Underlay,
        ObservedPlace::Other => mesh::FabricPlace::Other,
    };
    // The gateway keeps the highest number for a port that is in none that can be compared.
    let vni = Some(seen.vni.get()).filter(|vni| *vni != VNI_MAX);
    mesh::FabricPortState {
        admin_up: seen.admin_up,
        oper_up: Some(seen.oper_up),
        place: place.into(),
        vni: vni.unwrap_or_default(),
        ..mesh::FabricPortState::default()
    }
}

fn neighbour(heard: &Neighbour) -> mesh::FabricNeighbour {
    mesh::FabricNeighbour {
        system_name: heard.system_name.clone(),
        port_id: heard.port_id.clone(),
        mac: heard.mac.map(|mac| mac.to_string()).unwrap_or_default(),
    }
}

fn session(session: &RoutingSession) -> mesh::FabricSession {
    mesh::FabricSession {
        vrf: session.vrf.clone(),
        neighbour: session.neighbour.clone(),
        family: session.family.clone(),
        remote_asn: session.remote_asn,
        state: session.state.clone(),
        since: time(session.since),
        prefixes_received: session.received,
        prefixes_sent: session.sent,
        established: session.established,
        last_error: session.last_error.clone(),
    }
}

fn evpn(tables: EvpnTables) -> mesh::FabricEvpn {
    mesh::FabricEvpn {
        l2_vnis: tables.l2_vnis,
        l3_vnis: tables.l3_vnis,
        routes: tables.routes,
    }
}

fn difference(switch: &SwitchId, found: Difference) -> mesh::FabricDifference {
    let state = match found.state {
        DifferenceState::Pending => mesh::FabricDifferenceState::Pending,
        DifferenceState::Failing => mesh::FabricDifferenceState::Failing,
        DifferenceState::Blocked => mesh::FabricDifferenceState::Blocked,
        DifferenceState::Held => mesh::FabricDifferenceState::Held,
        DifferenceState::Drifted => mesh::FabricDifferenceState::Drifted,
        DifferenceState::Healed => mesh::FabricDifferenceState::Healed,
    };
    mesh::FabricDifference {
        switch: switch.to_string(),
        object: found.object,
        field: found.field.to_owned(),
        wanted: found.wanted,
        seen: found.seen,
        since: found.since.and_then(time),
        state: state.into(),
        reason: found.reason,
        attempts: found.attempts,
    }
}
