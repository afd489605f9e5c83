//! The gate in front of machines' ports: after a boot they come up last, when the fabric is there.
//!
//! A port with a carrier attracts traffic: a bond sends over it, and a machine with BGP shares its
//! load. Before EVPN has told a leaf who is where, that traffic would go nowhere, while the other
//! leaf could carry it.

use std::time::Duration;

use tokio::time::Instant;

use crate::frr::sessions::BgpSession;
use crate::model::{Membership, SwitchModel};
use crate::step::Step;

/// Time that an EVPN session to a spine is up before a machine's port may come up: routes come, and
/// zebra gives them to the kernel.
pub(super) const SETTLE: Duration = Duration::from_secs(3);
/// Time after which ports come up in any case: machines of a rack that no spine answers still
/// reach each other on one leaf.
const PATIENCE: Duration = Duration::from_secs(60);

/// EVPN as FRR names it.
const EVPN: &str = "l2VpnEvpn";

/// The gate. Once open it stays so: what fails later is for the machines to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gate {
    is_open: bool,
    /// First time that it was found closed.
    since: Option<Instant>,
}

impl Gate {
    pub(super) fn is_open(self) -> bool {
        self.is_open
    }

    /// Looks at the sessions of the switch, and opens if the fabric is there.
    pub(super) fn look(&mut self, sessions: &[BgpSession], now: Instant) {
        let since = *self.since.get_or_insert(now);
        let is_there = sessions.iter().any(|session| {
            session.family == EVPN && session.is_established() && session.age >= SETTLE
        });
        self.is_open |= is_there || now.duration_since(since) >= PATIENCE;
    }
}

/// `true` if a step lets machines send to a leaf that speaks EVPN: a port of theirs comes up.
pub(super) fn is_gated(model: &SwitchModel, step: &Step) -> bool {
    let Step::SetAdmin { port, up: true } = step else {
        return false;
    };
    let speaks = model
        .bgp
        .as_ref()
        .is_some_and(|bgp| bgp.underlay.values().any(|of| of.has_evpn));
    let port = model.ports.get(port);
    let comes_up = port.is_some_and(|port| {
        let is_machine = matches!(
            port.membership,
            Membership::Segment { .. } | Membership::Routed(_)
        );
        !port.admin_up && is_machine
    });
    speaks && comes_up
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(family: &str, state: &str, age: u64) -> BgpSession {
        BgpSession {
            vrf: "default".into(),
            neighbour: "swp31".into(),
            family: family.into(),
            remote_as: 4_200_000_001,
            state: state.into(),
            age: Duration::from_secs(age),
            received: 0,
            sent: 0,
            established: 1,
            dropped: 0,
            table: 0,
        }
    }

    #[test]
    fn opens_with_an_evpn_session_and_after_its_patience() {
        let start = Instant::now();
        for (sessions, waited, is_open) in [
            (vec![], 0, false),
            (vec![session(EVPN, "Established", 2)], 2, false),
            (vec![session(EVPN, "Established", 3)], 0, true),
            (vec![session("ipv4Unicast", "Established", 9)], 9, false),
            (vec![session(EVPN, "Active", 9)], 9, false),
            (
                vec![session(EVPN, "Active", 9), session(EVPN, "Established", 3)],
                9,
                true,
            ),
            (vec![], 59, false),
            (vec![], 60, true),
        ] {
            let mut gate = Gate::default();
            gate.look(&[], start);
            gate.look(&sessions, start + Duration::from_secs(waited));
            assert_eq!(gate.is_open(), is_open, "{sessions:?} after {waited} s");
        }
    }

    #[test]
    fn stays_open() {
        let start = Instant::now();
        let mut gate = Gate::default();
        gate.look(&[session(EVPN, "Established", 3)], start);
        gate.look(&[], start);
        assert!(gate.is_open());
    }
}
