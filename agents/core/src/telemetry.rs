//! Sessions, counters and optics, read at intervals: reading them takes longer than a report of a
//! moved port may wait.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use agents_nos::frr::sessions::BgpSession;
use agents_nos::model::PortName;
use agents_nos::{Nos, Telemetry};
use base_runtime::Chain;
use base_telemetry::traces::now_ns;
use proto_mesh::{PortCounters, PortOptics, SwitchEvpn, SwitchSession};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::route_audit::audit;
use crate::route_limit::RouteLimiter;

/// Pause between two readings.
const EVERY: Duration = Duration::from_secs(5);
/// Deadline of a reading. FRR with 500 VRFs answers within a second.
const DEADLINE: Duration = Duration::from_secs(10);
/// Sessions in a report. Further ones are counted.
const SESSIONS_MAX: usize = 512;

/// A reading and its time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    telemetry: Telemetry,
    /// Milliseconds since 1970.
    at_ms: u64,
}

/// Reads until `stop`, audits the prefixes of firewalls, and lets the limiter look at sessions and
/// findings. Wakes the reports when a session came up or went down, and not for numbers.
pub(crate) async fn run<S: Nos>(
    switch: Arc<S>,
    told: watch::Sender<Sample>,
    mut limiter: RouteLimiter,
    stop: CancellationToken,
) {
    loop {
        let read = tokio::select! {
            () = stop.cancelled() => return,
            read = timeout(DEADLINE, switch.telemetry()) => read,
        };
        // Nothing rather than the last one: a session that was up an hour ago may be down. At debug
        // level, because the reconciliation says what is wrong with FRR.
        let telemetry = match read {
            Ok(Ok(telemetry)) => telemetry,
            Ok(Err(error)) => {
                debug!(error = %Chain(&error), "telemetry cannot be read");
                Telemetry::default()
            }
            Err(_) => {
                debug!("telemetry is read too slowly");
                Telemetry::default()
            }
        };
        told.send_if_modified(|sample| {
            let is_news = up(&sample.telemetry) != up(&telemetry);
            let at_ms = now_ns() / 1_000_000;
            *sample = Sample { telemetry, at_ms };
            is_news
        });
        let findings = tokio::select! {
            () = stop.cancelled() => return,
            findings = audit(switch.as_ref(), limiter.desired()) => findings,
        };
        {
            let sample = told.borrow();
            limiter.look(&sample.telemetry.sessions, &findings, Instant::now());
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(EVERY) => {}
        }
    }
}

/// A session, and `true` if it is up: a report does not wait for such news.
type SessionNews<'t> = (&'t str, &'t str, &'t str, bool);

fn up(telemetry: &Telemetry) -> Vec<SessionNews<'_>> {
    let sessions = telemetry.sessions.iter();
    sessions
        .map(|one| {
            (
                one.vrf.as_str(),
                one.neighbour.as_str(),
                one.family.as_str(),
                one.is_established(),
            )
        })
        .collect()
}

impl Sample {
    /// The sessions for a report, those that are down first.
    pub(crate) fn sessions(&self) -> Vec<SwitchSession> {
        let mut sessions: Vec<&BgpSession> = self.telemetry.sessions.iter().collect();
        sessions.sort_by_key(|session| Reverse(!session.is_established()));
        let listed = sessions.into_iter().take(SESSIONS_MAX);
        listed.map(|session| self.session(session)).collect()
    }

    /// Number of sessions that are not listed.
    pub(crate) fn omitted(&self, listed: &[SwitchSession]) -> u32 {
        let omitted = self.telemetry.sessions.len() - listed.len();
        u32::try_from(omitted).unwrap_or(u32::MAX)
    }

    fn session(&self, session: &BgpSession) -> SwitchSession {
        let age = u64::try_from(session.age.as_millis()).unwrap_or(u64::MAX);
        let since_ms = match age {
            0 => 0,
            age => self.at_ms.saturating_sub(age),
        };
        let mut failures = self.telemetry.failures.iter();
        let failure = failures
            .find(|failure| failure.vrf == session.vrf && failure.neighbour == session.neighbour);
        SwitchSession {
            vrf: session.vrf.clone(),
            neighbour: session.neighbour.clone(),
            family: session.family.clone(),
            remote_asn: session.remote_as,
            state: session.state.clone(),
            since_ms,
            prefixes_received: session.received,
            prefixes_sent: session.sent,
            established: session.established,
            last_error: failure
                .map(|failure| failure.reason.clone())
                .unwrap_or_default(),
        }
    }

    /// EVPN's tables. `None` on a switch without EVPN.
    pub(crate) fn evpn(&self) -> Option<SwitchEvpn> {
        self.telemetry.evpn.map(|evpn| SwitchEvpn {
            l2_vnis: evpn.l2_vnis,
            l3_vnis: evpn.l3_vnis,
            routes: evpn.routes,
        })
    }

    /// Counters of a port.
    pub(crate) fn counters(&self, port: &PortName) -> Option<PortCounters> {
        let counted = self.telemetry.ports.get(port)?.counters?;
        Some(PortCounters {
            rx_bytes: counted.rx_bytes,
            tx_bytes: counted.tx_bytes,
            rx_packets: counted.rx_packets,
            tx_packets: counted.tx_packets,
            rx_errors: counted.rx_errors,
            tx_errors: counted.tx_errors,
            rx_drops: counted.rx_drops,
            tx_drops: counted.tx_drops,
        })
    }

    /// The transceiver of a port.
    pub(crate) fn optics(&self, port: &PortName) -> Option<PortOptics> {
        let optics = self.telemetry.ports.get(port)?.optics.as_ref()?;
        Some(PortOptics {
            vendor: optics.vendor.clone(),
            part: optics.part.clone(),
            serial: optics.serial.clone(),
            rx_power: optics.rx_power,
            tx_power: optics.tx_power,
            temperature: optics.temperature,
        })
    }
}
