//! Messages to control: the registration, and reports of the observed state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agents_nos::lldp::Neighbours;
use agents_nos::model::PortName;
use agents_nos::{Membership, Nos, Observation, Vni};
use base_runtime::jittered;
use proto_mesh::{
    LldpNeighbour, PortState, SwitchPort, SwitchRegisterRequest, SwitchReport, SwitchServiceClient,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::Config;
use crate::reconcile::Outcome;

/// Longest time between two reports, which are the switch's heartbeat.
const EVERY: Duration = Duration::from_secs(10);
/// Changes within this time share one report.
const GATHER: Duration = Duration::from_millis(50);
/// Mean pause before a failed registration is repeated.
const REGISTER_RETRY: Duration = Duration::from_secs(5);
/// Deadline of each call.
const DEADLINE: Duration = Duration::from_secs(5);
/// The VNI that a report names for a routed port outside of its place. No tenant has it.
const ELSEWHERE: u32 = Vni::MAX;

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

/// Reports on change and every ten seconds, until `stop`.
pub(crate) async fn run(
    client: SwitchServiceClient,
    config: Arc<Config>,
    mut observed: watch::Receiver<Outcome>,
    neighbours: Neighbours,
    stop: CancellationToken,
) {
    let client = client.with_deadline(DEADLINE);
    loop {
        let outcome = observed.borrow_and_update().clone();
        let report = report(&config, &outcome, &neighbours);
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
            () = sleep_until(next) => {}
        }
    }
}

fn report(config: &Config, outcome: &Outcome, neighbours: &Neighbours) -> SwitchReport {
    let links = outcome.state.links.iter();
    let front = links.filter(|(name, _)| is_front(config, name));
    let ports = front.filter_map(|(name, link)| {
        let port = outcome.state.model.ports.get(name)?;
        Some(PortState {
            name: name.to_string(),
            mac: mac(link.mac),
            admin_up: port.admin_up,
            oper_up: link.oper_up,
            vni: vni(outcome, name, &port.membership),
            neighbours: neighbours
                .on(name.as_ref())
                .into_iter()
                .map(neighbour)
                .collect(),
        })
    });
    SwitchReport {
        applied_term: outcome.applied.0,
        applied_generation: outcome.applied.1,
        sync_duration_ms: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
        error: outcome.error.clone(),
        ports: ports.collect(),
    }
}

/// The VNI of the place that a port is in; see `PortState.vni`.
fn vni(outcome: &Outcome, port: &PortName, place: &Membership) -> u32 {
    match place {
        Membership::Quarantine => 0,
        Membership::Segment { vni, .. } => vni.get(),
        Membership::Routed(vrf) => {
            let vrf = outcome.state.model.vrfs.get(vrf);
            let l3_vni = vrf.and_then(|vrf| vrf.l3_vni);
            l3_vni.map_or(ELSEWHERE, Vni::get)
        }
        // Not 0, which would say that the port is isolated: control would give it away.
        Membership::Underlay => outcome.underlay.as_ref().map_or(0, |wanted| {
            let wanted = wanted.get(port.as_ref()).copied();
            wanted.filter(|vni| *vni != 0).unwrap_or(ELSEWHERE)
        }),
        Membership::Foreign(_) => 0,
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
