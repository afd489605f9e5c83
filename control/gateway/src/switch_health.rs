//! The condition of a switch, from its agent's report.

use control_presence::{OpticsReading, PortNumbers, SwitchNumbers};
use control_state::{EvpnTables, ObjectDrift, ObjectProblem, RoutingSession, SwitchHealth};
use proto_mesh::{PortState, SwitchDrift, SwitchProblem, SwitchReport, SwitchSession};
use proto_types::Timestamp;

/// Takes problems, drift and sessions out of a report. `clip_reports` bounds them.
pub(crate) fn health(report: &mut SwitchReport) -> SwitchHealth {
    let evpn = report.evpn.map(|evpn| EvpnTables {
        l2_vnis: evpn.l2_vnis,
        l3_vnis: evpn.l3_vnis,
        routes: evpn.routes,
    });
    let problems = std::mem::take(&mut report.problems).into_iter();
    let drift = std::mem::take(&mut report.drift).into_iter();
    let sessions = std::mem::take(&mut report.sessions).into_iter();
    SwitchHealth {
        problems: problems.map(problem).collect(),
        problems_omitted: report.problems_omitted,
        drift: drift.map(object_drift).collect(),
        sessions: sessions.map(session).collect(),
        sessions_omitted: report.sessions_omitted,
        evpn,
        is_draining: report.draining,
    }
}

fn problem(problem: SwitchProblem) -> ObjectProblem {
    ObjectProblem {
        object: problem.object,
        reason: problem.reason,
        attempts: problem.attempts,
    }
}

fn object_drift(drift: SwitchDrift) -> ObjectDrift {
    ObjectDrift {
        object: drift.object,
        seen: drift.seen,
        desired: drift.desired,
        noticed_at: Timestamp::from_ms(drift.noticed_ms),
        is_healed: drift.healed,
        is_held: drift.held,
    }
}

fn session(session: SwitchSession) -> RoutingSession {
    RoutingSession {
        vrf: session.vrf,
        neighbour: session.neighbour,
        family: session.family,
        remote_asn: session.remote_asn,
        state: session.state,
        since: Timestamp::from_ms(session.since_ms),
        received: session.prefixes_received,
        sent: session.prefixes_sent,
        established: session.established,
        last_error: session.last_error,
    }
}

/// The counters and optics of a report's ports.
pub(crate) fn numbers(at: Timestamp, ports: &[PortState]) -> SwitchNumbers {
    let of = |port: &PortState| PortNumbers {
        counters: port.counters.map(|counted| {
            [
                counted.rx_bytes,
                counted.tx_bytes,
                counted.rx_packets,
                counted.tx_packets,
                counted.rx_errors,
                counted.tx_errors,
                counted.rx_drops,
                counted.tx_drops,
            ]
        }),
        optics: port.optics.as_ref().map(|optics| OpticsReading {
            module: [&optics.vendor, &optics.part, &optics.serial].map(|text| clipped(text)),
            readings: [optics.rx_power, optics.tx_power, optics.temperature],
        }),
    };
    let named = ports.iter().map(|port| (port.name.clone(), of(port)));
    SwitchNumbers {
        at,
        ports: named.collect(),
    }
}

fn clipped(text: &str) -> String {
    control_state::bounds::clip(text, 64).to_owned()
}
