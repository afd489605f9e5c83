//! The limits of a firewall's EVPN routes. FRR 8.4.4 has no `maximum-prefix` for EVPN, and a firewall
//! chooses how many prefixes it announces in its networks: without a limit it could take the memory
//! of bgpd, of zebra and of the kernel's table, and with it all other tenants of the leaf. Neither
//! does it compare the prefixes, so that what [the audit](crate::route_audit) finds is refused here.

use std::collections::BTreeMap;
use std::time::Duration;

use agents_nos::frr::sessions::BgpSession;
use proto_mesh::{PortPlace, SwitchDesired};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::warn;

use crate::route_audit::Findings;
use crate::suspension::{Excess, Suspended, Suspension};
use crate::suspensions::Suspensions;

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

/// Suspends sessions with too many routes, and the routes of VNIs in which there is one that does not
/// belong.
#[derive(Debug)]
pub(crate) struct RouteLimiter {
    desired: watch::Receiver<Option<SwitchDesired>>,
    told: watch::Sender<Suspensions>,
    /// Bounded by the firewalls of the switch and their VNIs.
    offenders: BTreeMap<Suspended, Offender>,
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

    /// The desired state that it goes by.
    pub(crate) fn desired(&self) -> &watch::Receiver<Option<SwitchDesired>> {
        &self.desired
    }

    /// Looks at the sessions of the switch and the findings of the audit.
    pub(crate) fn look(&mut self, sessions: &[BgpSession], findings: &Findings, now: Instant) {
        let limits = limits(self.desired.borrow().as_ref());
        self.offenders
            .retain(|of, offender| limits.contains_key(&of.port) && now < offender.until + FORGET);
        for session in sessions {
            if session.family != EVPN || session.vrf != "default" {
                continue;
            }
            let limit = limits.get(&session.neighbour);
            if let Some(limit) = limit.filter(|limit| session.received > **limit) {
                let of = Suspended {
                    port: session.neighbour.clone(),
                    vni: None,
                };
                let excess = Excess::Routes {
                    received: session.received,
                    limit: *limit,
                };
                self.suspend(of, excess, now);
            }
        }
        for (of, prefix) in findings {
            if limits.contains_key(&of.port) {
                self.suspend(of.clone(), Excess::Prefix(*prefix), now);
            }
        }
        let away = self.offenders.iter().filter(|(_, of)| now < of.until);
        let away: Suspensions = away
            .map(|(of, offender)| (of.clone(), offender.last))
            .collect();
        self.told.send_if_modified(|told| {
            let is_news = *told != away;
            *told = away;
            is_news
        });
    }

    fn suspend(&mut self, of: Suspended, excess: Excess, now: Instant) {
        let before = self.offenders.get(&of).copied();
        if before.is_some_and(|of| now < of.until) {
            return;
        }
        let times = before.map_or(0, |of| of.times);
        let wait = WAIT_MIN.saturating_mul(1 << times.min(16)).min(WAIT_MAX);
        let last = Suspension { excess, wait };
        let vni = of.vni.map(agents_nos::Vni::get);
        warn!(
            port = of.port,
            vni,
            ?excess,
            ?wait,
            "a firewall announces what it may not"
        );
        let offender = Offender {
            times: times.saturating_add(1),
            until: now + wait,
            last,
        };
        self.offenders.insert(of, offender);
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
            limiter.look(std::slice::from_ref(&one), &Findings::new(), Instant::now());
            assert_eq!(
                heard.borrow().wait_of("swp5", None).is_some(),
                is_away,
                "{one:?}"
            );
        }
    }

    #[test]
    fn a_session_comes_back_later_each_time() {
        let (desired_in, receiver) = watch::channel(Some(desired(&[27])));
        let (told, heard) = watch::channel(Suspensions::default());
        let mut limiter = RouteLimiter::new(receiver, told);
        let flood = [session("swp5", "default", EVPN, 40_000)];
        let none = Findings::new();
        let mut now = Instant::now();
        for seconds in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            limiter.look(&flood, &none, now);
            let wait = Duration::from_secs(seconds);
            assert_eq!(heard.borrow().wait_of("swp5", None), Some(wait));
            // What is read before the session has gone counts once.
            limiter.look(&flood, &none, now + Duration::from_secs(5));
            now += wait;
            limiter.look(&[], &none, now);
            assert!(
                heard.borrow().wait_of("swp5", None).is_none(),
                "after {seconds} s"
            );
        }
        limiter.look(&[], &none, now + FORGET);
        assert!(limiter.offenders.is_empty());
        // Another firewall on the port begins anew.
        limiter.look(&flood, &none, now);
        desired_in.send_replace(None);
        limiter.look(&flood, &none, now);
        assert!(heard.borrow().wait_of("swp5", None).is_none() && limiter.offenders.is_empty());
    }

    #[test]
    fn the_routes_of_one_vni_are_refused_for_a_prefix_that_does_not_belong() {
        let (_desired, receiver) = watch::channel(Some(desired(&[27, 28])));
        let (told, heard) = watch::channel(Suspensions::default());
        let mut limiter = RouteLimiter::new(receiver, told);
        let vni = |number: u32| agents_nos::Vni::new(number).ok();
        let finding = |port: &str| {
            let port = port.to_owned();
            let of = Suspended { port, vni: vni(28) };
            Findings::from([(of, "10.5.0.7/32".parse().unwrap())])
        };
        let now = Instant::now();
        limiter.look(&[], &finding("swp5"), now);
        let wait = |of: Option<u32>| heard.borrow().wait_of("swp5", of.and_then(vni));
        assert_eq!(wait(Some(28)), Some(WAIT_MIN));
        assert_eq!((wait(Some(27)), wait(None)), (None, None));
        limiter.look(&[], &finding("swp5"), now + WAIT_MIN);
        assert_eq!(wait(Some(28)), Some(2 * WAIT_MIN));
        limiter.look(&[], &finding("swp31"), now);
        assert_eq!(limiter.offenders.len(), 1, "a port of no firewall");
    }
}
