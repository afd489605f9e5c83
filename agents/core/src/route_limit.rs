//! The limits of routes that machines and firewalls announce.
//!
//! FRR 8.4.4 has no `maximum-prefix` for EVPN, and a firewall chooses how many prefixes it announces in
//! its networks: without a limit it could take the memory of bgpd, of zebra and of the kernel's table,
//! and with it all other tenants of the leaf. Neither does it compare the prefixes, so that what
//! [the audit](crate::route_audit) finds is refused here.
//!
//! A machine has a limit in FRR, for each IP version. Many machines of a tenant have none together,
//! and each of their routes is one of every leaf and spine: the sum of a VRF is limited here.

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
/// Routes that the machines of a VRF may announce at this leaf together, of both IP versions: some
/// hundred for each of a rack's machines.
const ROUTES_OF_VRF: u64 = 16_384;
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
    /// Bounded by the ports of the switch and the VNIs of its firewalls.
    offenders: BTreeMap<Suspended, Offender>,
}

#[derive(Clone, Copy, Debug)]
struct Offender {
    times: u32,
    until: Instant,
    last: Suspension,
}

impl RouteLimiter {
    /// A limiter of a desired state's ports, which tells of sessions that have to go.
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
        let (limits, machines) = {
            let desired = self.desired.borrow();
            (limits(desired.as_ref()), machines(desired.as_ref()))
        };
        self.offenders.retain(|of, offender| {
            let is_known = limits.contains_key(&of.port) || machines.contains_key(&of.port);
            is_known && now < offender.until + FORGET
        });
        for session in sessions {
            if session.family != EVPN || session.vrf != "default" {
                continue;
            }
            let limit = limits.get(&session.neighbour);
            if let Some(limit) = limit.filter(|limit| session.received > **limit) {
                let excess = Excess::Routes {
                    received: session.received,
                    limit: *limit,
                };
                self.suspend(whole(&session.neighbour), excess, now);
            }
        }
        self.look_at_machines(sessions, &machines, now);
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

    /// Suspends the machine with the most routes of each VRF whose machines have too many together. The
    /// next look finds the next one, if there are still too many.
    fn look_at_machines(
        &mut self,
        sessions: &[BgpSession],
        machines: &BTreeMap<String, u32>,
        now: Instant,
    ) {
        let mut received: BTreeMap<u32, BTreeMap<&str, u64>> = BTreeMap::new();
        for session in sessions {
            let port = session.neighbour.as_str();
            let Some(vrf) = machines.get(port) else {
                continue;
            };
            let before = self.offenders.get(&whole(port));
            // One that is away may be in a reading from before.
            let is_away = before.is_some_and(|offender| now < offender.until);
            if !is_away && session.vrf == format!("Vrf{vrf}") {
                let of_vrf = received.entry(*vrf).or_default();
                let of_port = of_vrf.entry(port).or_default();
                *of_port = of_port.saturating_add(session.received);
            }
        }
        for (vrf, ports) in received {
            let sum = ports
                .values()
                .fold(0_u64, |sum, of| sum.saturating_add(*of));
            let most = ports.into_iter().max_by_key(|(_, received)| *received);
            if let Some((port, _)) = most.filter(|_| sum > ROUTES_OF_VRF) {
                let excess = Excess::Vrf {
                    vrf,
                    received: sum,
                    limit: ROUTES_OF_VRF,
                };
                self.suspend(whole(port), excess, now);
            }
        }
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
            "a port announces what it may not"
        );
        let offender = Offender {
            times: times.saturating_add(1),
            until: now + wait,
            last,
        };
        self.offenders.insert(of, offender);
    }
}

/// The session of a port.
fn whole(port: &str) -> Suspended {
    Suspended {
        port: port.to_owned(),
        vni: None,
    }
}

/// The L3 VNI of each machine that speaks BGP, by port.
fn machines(desired: Option<&SwitchDesired>) -> BTreeMap<String, u32> {
    let ports = desired.iter().flat_map(|desired| &desired.ports);
    let routed = ports.filter(|port| port.place == i32::from(PortPlace::Routed));
    routed.map(|port| (port.name.clone(), port.vni)).collect()
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
    fn the_machines_of_a_vrf_have_a_limit_together() {
        let port = |name: &str, vni| PortIntent {
            name: name.into(),
            vni,
            place: PortPlace::Routed.into(),
            ..PortIntent::default()
        };
        let wanted = SwitchDesired {
            ports: vec![port("swp1", 27), port("swp2", 27), port("swp3", 28)],
            ..SwitchDesired::default()
        };
        let (_desired, receiver) = watch::channel(Some(wanted));
        let (told, heard) = watch::channel(Suspensions::default());
        let mut limiter = RouteLimiter::new(receiver, told);
        let of = |port: &str, vrf: &str, received: [u64; 2]| {
            let [v4, v6] = received;
            [
                session(port, vrf, "ipv4Unicast", v4),
                session(port, vrf, "ipv6Unicast", v6),
            ]
        };
        let all = |two: [u64; 2], three: [u64; 2]| {
            let one = of("swp1", "Vrf27", [4000, 200]);
            // A session of another VRF on the same port is none of the machine's.
            let stale = of("swp1", "Vrf28", [9000, 9000]);
            let sessions = [one, of("swp2", "Vrf27", two), of("swp3", "Vrf28", three)];
            [sessions.concat(), stale.to_vec()].concat()
        };
        let now = Instant::now();
        let full = ROUTES_OF_VRF - 4200;
        let away = || {
            let heard = heard.borrow();
            ["swp1", "swp2", "swp3"].map(|port| heard.wait_of(port, None).is_some())
        };
        limiter.look(&all([full, 0], [ROUTES_OF_VRF, 0]), &Findings::new(), now);
        assert_eq!(away(), [false; 3]);
        let flood = all([full, 1], [0, ROUTES_OF_VRF + 1]);
        limiter.look(&flood, &Findings::new(), now);
        assert_eq!(away(), [false, true, true]);
        // A reading from before that they went counts for nobody else.
        limiter.look(&flood, &Findings::new(), now);
        assert_eq!(away(), [false, true, true]);
        limiter.look(&[], &Findings::new(), now + WAIT_MIN);
        assert_eq!(away(), [false; 3]);
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
