//! The limit of a firewall's EVPN routes. FRR 8.4.4 has no `maximum-prefix` for EVPN, and a firewall
//! chooses how many prefixes it announces in its networks: without a limit it could take the memory
//! of bgpd, of zebra and of the kernel's table, and with it all other tenants of the leaf.

use std::collections::BTreeMap;
use std::time::Duration;

use agents_nos::frr::sessions::BgpSession;
use proto_mesh::{PortPlace, SwitchDesired};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::warn;

use crate::suspensions::{Suspension, Suspensions};

/// EVPN routes that every firewall may announce: the prefixes that its networks reach through it.
const ROUTES: u64 = 4096;
/// Further routes for each of its networks: its tunnel end, its MAC and its addresses there.
const ROUTES_OF_NETWORK: u64 = 64;
/// Time that a session is away after the first excess. Doubled each time.
const WAIT_MIN: Duration = Duration::from_secs(60);
/// Longest time that a session is away.
const WAIT_MAX: Duration = Duration::from_secs(3600);
/// Time without an excess after which earlier ones no longer count.
const FORGET: Duration = Duration::from_secs(2 * 3600);
/// EVPN as FRR names it.
const EVPN: &str = "l2VpnEvpn";

/// Looks for sessions with too many routes.
#[derive(Debug)]
pub(crate) struct RouteLimiter {
    desired: watch::Receiver<Option<SwitchDesired>>,
    told: watch::Sender<Suspensions>,
    /// By port; bounded by the firewalls of the switch.
    offenders: BTreeMap<String, Offender>,
}

#[derive(Clone, Copy, Debug)]
struct Offender {
    times: u32,
    until: Instant,
    last: Suspension,
}

impl RouteLimiter {
    /// A limiter of the firewalls of a desired state, which tells of sessions that have to go.
    pub(crate) fn new(
        desired: watch::Receiver<Option<SwitchDesired>>,
        told: watch::Sender<Suspensions>,
    ) -> Self {
        Self {
            desired,
            told,
            offenders: BTreeMap::new(),
        }
    }

    /// Looks at the sessions of the switch.
    pub(crate) fn look(&mut self, sessions: &[BgpSession], now: Instant) {
        let limits = limits(self.desired.borrow().as_ref());
        self.offenders
            .retain(|port, of| limits.contains_key(port) && now < of.until + FORGET);
        for session in sessions {
            if session.family != EVPN || session.vrf != "default" {
                continue;
            }
            let limit = limits.get(&session.neighbour);
            if let Some(limit) = limit.filter(|limit| session.received > **limit) {
                self.suspend(&session.neighbour, session.received, *limit, now);
            }
        }
        let away = self.offenders.iter().filter(|(_, of)| now < of.until);
        let away: Suspensions = away.map(|(port, of)| (port.clone(), of.last)).collect();
        self.told.send_if_modified(|told| {
            let is_news = *told != away;
            *told = away;
            is_news
        });
    }

    fn suspend(&mut self, port: &str, received: u64, limit: u64, now: Instant) {
        let before = self.offenders.get(port).copied();
        if before.is_some_and(|of| now < of.until) {
            return;
        }
        let times = before.map_or(0, |of| of.times);
        let wait = WAIT_MIN.saturating_mul(1 << times.min(16)).min(WAIT_MAX);
        let last = Suspension {
            received,
            limit,
            wait,
        };
        warn!(
            port,
            received,
            limit,
            ?wait,
            "a firewall announces too many EVPN routes"
        );
        let offender = Offender {
            times: times.saturating_add(1),
            until: now + wait,
            last,
        };
        self.offenders.insert(port.to_owned(), offender);
    }
}

/// The most EVPN routes of each firewall, by port.
fn limits(desired: Option<&SwitchDesired>) -> BTreeMap<String, u64> {
    let ports = desired.iter().flat_map(|desired| &desired.ports);
    let firewalls = ports.filter(|port| port.place == i32::from(PortPlace::Underlay));
    let limits = firewalls.filter_map(|port| {
        let networks = u64::try_from(port.filter.as_ref()?.vnis.len()).ok()?;
        let own = networks.saturating_mul(ROUTES_OF_NETWORK);
        Some((port.name.clone(), own.saturating_add(ROUTES)))
    });
    limits.collect()
}

#[cfg(test)]
mod tests {
    use proto_mesh::{PortFilter, PortIntent};

    use super::*;

    fn session(port: &str, vrf: &str, family: &str, received: u64) -> BgpSession {
        BgpSession {
            vrf: vrf.into(),
            neighbour: port.into(),
            family: family.into(),
            remote_as: 4_210_000_001,
            state: "Established".into(),
            age: Duration::from_secs(9),
            received,
            sent: 0,
            established: 1,
            dropped: 0,
            table: 0,
        }
    }

    fn desired(vnis: &[u32]) -> SwitchDesired {
        let filter = PortFilter {
            vnis: vnis.into(),
            ..PortFilter::default()
        };
        let firewall = PortIntent {
            name: "swp5".into(),
            place: PortPlace::Underlay.into(),
            filter: Some(filter),
            ..PortIntent::default()
        };
        SwitchDesired {
            ports: vec![firewall],
            ..SwitchDesired::default()
        }
    }

    #[test]
    fn only_a_firewalls_evpn_routes_count() {
        let (_desired, receiver) = watch::channel(Some(desired(&[27, 28])));
        let (told, heard) = watch::channel(Suspensions::default());
        let mut limiter = RouteLimiter::new(receiver, told);
        let limit = ROUTES + 2 * ROUTES_OF_NETWORK;
        for (one, is_away) in [
            (session("swp5", "default", EVPN, limit), false),
            (session("swp5", "default", "ipv4Unicast", limit + 1), false),
            (session("swp5", "Vrf27", EVPN, limit + 1), false),
            (session("swp31", "default", EVPN, limit + 1), false),
            (session("swp5", "default", EVPN, limit + 1), true),
        ] {
            limiter.look(std::slice::from_ref(&one), Instant::now());
            assert_eq!(heard.borrow().wait_of("swp5").is_some(), is_away, "{one:?}");
        }
    }

    #[test]
    fn a_session_comes_back_later_each_time() {
        let (desired_in, receiver) = watch::channel(Some(desired(&[27])));
        let (told, heard) = watch::channel(Suspensions::default());
        let mut limiter = RouteLimiter::new(receiver, told);
        let flood = [session("swp5", "default", EVPN, 40_000)];
        let mut now = Instant::now();
        for seconds in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            limiter.look(&flood, now);
            let wait = Duration::from_secs(seconds);
            assert_eq!(heard.borrow().wait_of("swp5"), Some(wait));
            // What is read before the session has gone counts once.
            limiter.look(&flood, now + Duration::from_secs(5));
            now += wait;
            limiter.look(&[], now);
            assert!(
                heard.borrow().wait_of("swp5").is_none(),
                "after {seconds} s"
            );
        }
        limiter.look(&[], now + FORGET);
        assert!(limiter.offenders.is_empty());
        // Another firewall on the port begins anew.
        limiter.look(&flood, now);
        desired_in.send_replace(None);
        limiter.look(&flood, now);
        assert!(heard.borrow().wait_of("swp5").is_none() && limiter.offenders.is_empty());
    }
}
