//! One cable of a machine, as far as a packet depends on it.

use crate::desired::{PortIntent, PortPlace, port_intents};
use crate::machine::entity::{Machine, PortLink};
use crate::overlay::trace::TraceHop;
use crate::overlay::{desired_place, is_place, observed_place};
use crate::switch::entity::{PortObserved, RoutingSession, Switch};
use crate::tables::Tables;
use std::sync::Arc;

/// The switch's end of a machine's cable.
pub(super) struct CableEnd {
    /// The switch.
    pub(super) switch: Arc<Switch>,
    /// The desired state of its port.
    pub(super) intent: PortIntent,
    /// The reason why no packet passes. `None` means that it passes, by all that is known.
    pub(super) obstacle: Option<String>,
}

/// The sender's cable that the packet takes.
pub(super) struct TraceOrigin {
    pub(super) end: CableEnd,
    /// The sender, if its tunnels begin in itself.
    pub(super) firewall: Option<Arc<Machine>>,
}

impl CableEnd {
    /// The ends of a machine's cables. Cables to switches that are not registered are left out.
    pub(super) fn all(tables: &Tables, machine: &Machine) -> Vec<Self> {
        let links = machine.links.iter();
        links.filter_map(|link| Self::of(tables, link)).collect()
    }

    fn of(tables: &Tables, link: &PortLink) -> Option<Self> {
        let switch = tables.get::<Switch>(&link.switch)?;
        let mut intents = port_intents(tables, switch).into_iter();
        let intent = intents.find(|intent| intent.name == link.port)?;
        let port = switch.ports.get(&link.port);
        let seen = port.and_then(|port| port.observed.as_ref());
        let obstacle = if link.unclaimed {
            Some("the machine does not report the cable".to_owned())
        } else {
            obstacle(switch, &intent, seen)
        };
        Some(Self {
            switch: Arc::clone(switch),
            intent,
            obstacle,
        })
    }

    /// The hop of the port.
    pub(super) fn hop(&self) -> TraceHop {
        let at = format!("{}/{}", self.switch.id, self.intent.name);
        let place = desired_place(self.intent.place, self.intent.vni);
        match &self.obstacle {
            Some(reason) => TraceHop::stop("port", at, reason.clone()),
            None => TraceHop::pass("port", at, format!("up, in {place}")),
        }
    }

    /// `true` if the switch is in service.
    pub(super) fn is_preferred(&self) -> bool {
        self.switch.drain.is_none()
    }
}

fn obstacle(switch: &Switch, intent: &PortIntent, seen: Option<&PortObserved>) -> Option<String> {
    let place = desired_place(intent.place, intent.vni);
    if !intent.admin_up {
        return Some("is to be down".to_owned());
    }
    let Some(seen) = seen else {
        return Some("the switch does not report the port".to_owned());
    };
    if !seen.admin_up {
        return Some("is administratively down".to_owned());
    }
    if !seen.oper_up {
        return Some("has no carrier".to_owned());
    }
    let is_there = !switch.hears || is_place(intent.place, seen.place);
    if !is_there || seen.vni != intent.vni {
        let seen = observed_place(seen.place, seen.vni);
        return Some(format!("is in {seen}, and belongs in {place}"));
    }
    // Without a report of sessions nothing is known of them, which proves no fault.
    let sessions = &switch.health.sessions;
    if intent.place == PortPlace::Segment || intent.filter.is_none() || sessions.is_empty() {
        return None;
    }
    let of_port = sessions.iter().filter(|one| one.neighbour == intent.name);
    match of_port.clone().next() {
        None => Some("the switch reports no BGP session with the machine".to_owned()),
        Some(first) if !of_port.clone().any(|one| one.is_established()) => Some(format!(
            "the BGP session with the machine is {}{}",
            first.state,
            because(&first.last_error)
        )),
        Some(_) if intent.place == PortPlace::Underlay => evpn_obstacle(of_port),
        Some(_) => None,
    }
}

/// The reason why a firewall exchanges no EVPN routes. Without a report of the family nothing is
/// known of it.
fn evpn_obstacle<'s>(of_port: impl Iterator<Item = &'s RoutingSession>) -> Option<String> {
    let evpn: Vec<_> = of_port.filter(|one| one.family == "l2VpnEvpn").collect();
    let first = evpn.first()?;
    let is_up = evpn.iter().any(|one| one.is_established());
    (!is_up).then(|| {
        let because = because(&first.last_error);
        format!(
            "the EVPN session with the firewall is {}{because}",
            first.state
        )
    })
}

fn because(reason: &str) -> String {
    if reason.is_empty() {
        return String::new();
    }
    format!(" ({reason})")
}
