//! Messages to control: the registration, and reports of the observed state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agents_nos::lldp::Neighbours;
use agents_nos::model::{Membership, PortName};
use agents_nos::{Nos, Observation, Vni};
use base_runtime::jittered;
use proto_mesh::{
    LldpNeighbour, PortPlace, PortState, SwitchDrift, SwitchPort, SwitchProblem,
    SwitchRegisterRequest, SwitchReport, SwitchServiceClient,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::Config;
use crate::drift_log::DriftEntry;
use crate::problems::ObjectProblem;
use crate::reconcile::Outcome;
use crate::telemetry::Sample;

/// Longest time between two reports, which are the switch's heartbeat.
const EVERY: Duration = Duration::from_secs(10);
/// Changes within this time share one report.
const GATHER: Duration = Duration::from_millis(50);
/// Mean pause before a failed registration is repeated.
const REGISTER_RETRY: Duration = Duration::from_secs(5);
/// Deadline of each call.
const DEADLINE: Duration = Duration::from_secs(5);

/// Registers at the start, and again when the switch's ports have changed.
pub(crate) async fn register<S: Nos>(
    client: SwitchServiceClient,
    config: Arc<Config>,
    switch: Arc<S>,
    mut observed: watch::Receiver<Outcome>,
    stop: CancellationToken,
) {
    let client = client.with_deadline(DEADLINE);
    let mut registered: Option<BTreeMap<String, String>> = None;
    loop {
        let ports = front_ports(&config, &observed.borrow_and_update().state);
        let mut retry = false;
        if !ports.is_empty() && registered.as_ref() != Some(&ports) {
            let request = registration(&config, switch.as_ref(), &ports);
            let answer = tokio::select! {
                () = stop.cancelled() => return,
                answer = client.register(request) => answer,
            };
            match answer {
                Ok(_) => {
                    info!(ports = ports.len(), "registered");
                    registered = Some(ports);
                }
                Err(error) => {
                    warn!(error = %error, "registration failed; retrying");
                    retry = true;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = observed.changed() => if changed.is_err() { return },
            () = sleep(jittered(REGISTER_RETRY)), if retry => {}
        }
    }
}

fn registration<S: Nos>(
    config: &Config,
    switch: &S,
    ports: &BTreeMap<String, String>,
) -> SwitchRegisterRequest {
    SwitchRegisterRequest {
        rack: config.rack.clone(),
        room: config.room.clone(),
        management_ip: config.management_ip.to_string(),
        vtep_ip: config.vtep.to_string(),
        ports: ports
            .iter()
            .map(|(name, mac)| SwitchPort {
                name: name.clone(),
                mac: mac.clone(),
            })
            .collect(),
        os_vendor: switch.vendor().to_owned(),
        os_version: switch.version(),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn front_ports(config: &Config, state: &Observation) -> BTreeMap<String, String> {
    let front = state
        .links
        .iter()
        .filter(|(name, _)| is_front(config, name));
    front
        .map(|(name, link)| (name.to_string(), mac(link.mac)))
        .collect()
}

fn mac(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

/// The parts that reports are made of.
pub(crate) struct Sources {
    /// The result of the last pass.
    pub(crate) observed: watch::Receiver<Outcome>,
    /// LLDP neighbours.
    pub(crate) neighbours: Neighbours,
    /// Sessions and counters.
    pub(crate) telemetry: watch::Receiver<Sample>,
}

/// Reports on change and every ten seconds, until `stop`.
pub(crate) async fn run(
    client: SwitchServiceClient,
    config: Arc<Config>,
    sources: Sources,
    stop: CancellationToken,
) {
    let client = client.with_deadline(DEADLINE);
    let Sources {
        mut observed,
        neighbours,
        mut telemetry,
    } = sources;
    loop {
        let outcome = observed.borrow_and_update().clone();
        let sample = telemetry.borrow_and_update().clone();
        let report = report(&config, &outcome, &neighbours, &sample);
        let reported = tokio::select! {
            () = stop.cancelled() => return,
            reported = client.report(report) => reported,
        };
        if let Err(error) = reported {
            // At debug level: while control is away this fails every ten seconds, and the session
            // logs the reason once.
            tracing::debug!(error = %error, "report failed");
        }
        let next = Instant::now() + EVERY;
        tokio::select! {
            () = stop.cancelled() => return,
            changed = observed.changed() => if changed.is_err() { return } else { sleep(GATHER).await },
            () = neighbours.changed() => sleep(GATHER).await,
            changed = telemetry.changed() => if changed.is_err() { return } else { sleep(GATHER).await },
            () = sleep_until(next) => {}
        }
    }
}

fn report(
    config: &Config,
    outcome: &Outcome,
    neighbours: &Neighbours,
    sample: &Sample,
) -> SwitchReport {
    let sessions = sample.sessions();
    let sessions_omitted = sample.omitted(&sessions);
    let links = outcome.state.links.iter();
    let front = links.filter(|(name, _)| is_front(config, name));
    let ports = front.filter_map(|(name, link)| {
        let port = outcome.state.model.ports.get(name)?;
        Some(PortState {
            name: name.to_string(),
            mac: mac(link.mac),
            admin_up: port.admin_up,
            oper_up: link.oper_up,
            vni: vni(&outcome.state, &port.membership),
            place: place(&port.membership).into(),
            neighbours: neighbours
                .on(name.as_ref())
                .into_iter()
                .map(neighbour)
                .collect(),
            counters: sample.counters(name),
            optics: sample.optics(name),
        })
    });
    SwitchReport {
        applied_term: outcome.applied.0,
        applied_generation: outcome.applied.1,
        sync_duration_ms: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
        error: outcome.error.clone(),
        ports: ports.collect(),
        problems: outcome.problems.listed().iter().map(problem).collect(),
        problems_omitted: outcome.problems.omitted(),
        drift: outcome.drift.iter().map(drift).collect(),
        sessions,
        sessions_omitted,
        evpn: sample.evpn(),
        draining: outcome
            .state
            .model
            .bgp
            .as_ref()
            .is_some_and(|bgp| bgp.is_draining),
    }
}

fn problem(of: &ObjectProblem) -> SwitchProblem {
    SwitchProblem {
        object: of.object.clone(),
        reason: of.reason.clone(),
        attempts: of.attempts,
    }
}

fn drift(entry: &DriftEntry) -> SwitchDrift {
    SwitchDrift {
        object: entry.drift.object.to_string(),
        seen: entry.drift.seen.clone(),
        desired: entry.drift.desired.clone(),
        noticed_ms: entry.noticed_ms,
        healed: entry.is_healed,
        held: entry.is_held,
    }
}

/// The segment of a port, or the L3 VNI of its VRF; 0 for none.
fn vni(state: &Observation, membership: &Membership) -> u32 {
    let vni = match membership {
        Membership::Routed(vrf) => state.model.vrfs.get(vrf).and_then(|vrf| vrf.l3_vni),
        other => other.segment(),
    };
    vni.map_or(0, Vni::get)
}

/// The kind of place that a port is in. Control tells a port in VRF 27 from one in segment 27 by it,
/// and a port in the underlay from an isolated one.
fn place(membership: &Membership) -> PortPlace {
    match membership {
        Membership::Quarantine | Membership::Segment { .. } => PortPlace::Unspecified,
        Membership::Routed(_) => PortPlace::Routed,
        Membership::Underlay => PortPlace::Underlay,
        Membership::Foreign(_) => PortPlace::Other,
    }
}

fn is_front(config: &Config, port: &PortName) -> bool {
    config.is_front(port.as_ref())
}

fn neighbour(frame: proto_wire_lldp::Frame) -> LldpNeighbour {
    LldpNeighbour {
        mac: mac(frame.source),
        chassis_id: frame.chassis_id,
        port_id: frame.port_id,
        system_name: frame.system_name,
        system_description: frame.system_description,
    }
}
