//! Cables: what machines and switches say of each other.
//!
//! A machine claims a port when one of its cards hears the switch there. A switch hears a machine
//! when frames of one of its cards arrive. A cable is what both say. Where the switch's agent
//! cannot tell whom it hears, a claim stands as long as no other machine makes the same.
//!
//! Invariant: the ports of a machine that somebody has, or that was not given back wholly, stay
//! its own, whatever anybody claims or hears.

pub(crate) mod issues;

use std::fmt;

use proto_types::{MacAddr, MachineId};

use crate::machine::entity::{Availability, Machine, Nic, Phase, PortLink, Segment};
use crate::switch::entity::{Neighbour, Switch, addresses};
use crate::tables::Tables;

/// Why a claim does not stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClaimRefused {
    /// The switch hears nobody there.
    Unheard,
    /// The switch hears others there.
    Others(String),
    /// The port is another machine's.
    Taken(MachineId),
    /// Another machine says the same, and nothing tells which of them is right.
    Contested(MachineId),
}

/// A claim that does not stand.
#[derive(Debug, Clone)]
pub(crate) struct DisputedClaim<'a> {
    mac: MacAddr,
    switch: &'a Switch,
    port: &'a str,
    refused: ClaimRefused,
}

impl fmt::Display for DisputedClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mac, switch, port) = (self.mac, &self.switch.id, self.port);
        write!(f, "the machine says that {mac} is at {switch} {port}, ")?;
        match &self.refused {
            ClaimRefused::Unheard => write!(f, "where {switch} hears nobody"),
            ClaimRefused::Others(heard) => write!(f, "where {switch} hears {heard}"),
            ClaimRefused::Taken(other) => write!(f, "which is the port of machine {other}"),
            ClaimRefused::Contested(other) => write!(f, "and so does machine {other}"),
        }
    }
}

/// A port that a machine claims.
type Claim<'a> = (&'a Switch, &'a str);

/// The ports of known switches that a card hears, in the order in which it tells them.
pub(crate) fn claims<'a>(tables: &'a Tables, machine: &Machine, nic: &'a Nic) -> Vec<Claim<'a>> {
    let known = |neighbour: &'a Neighbour| {
        let switch = tables.get::<Switch>(&neighbour.system_name.parse().ok()?)?;
        let is_here = machine.partition.as_ref() == Some(&switch.partition);
        (is_here && switch.ports.contains_key(&neighbour.port_id))
            .then_some((switch.as_ref(), neighbour.port_id.as_str()))
    };
    nic.neighbours.iter().filter_map(known).collect()
}

/// The machine that a neighbour says it is. Hammer and installed systems do.
fn named(neighbour: &Neighbour) -> Option<MachineId> {
    let names = [&neighbour.system_name, &neighbour.chassis_id];
    names.into_iter().find_map(|name| name.parse().ok())
}

/// Whether it is this card of this machine that is heard.
fn is_heard(machine: MachineId, mac: MacAddr, neighbour: &Neighbour) -> bool {
    addresses(neighbour).any(|heard| heard == mac)
        && named(neighbour).is_none_or(|name| name == machine)
}

fn heard_on<'a>(switch: &'a Switch, port: &str) -> &'a [Neighbour] {
    let port = switch.ports.get(port);
    let observed = port.and_then(|port| port.observed.as_ref());
    observed.map_or(&[], |observed| &observed.neighbours)
}

/// Whether other machines may get its ports: nobody has it, and nothing of a tenancy is left.
pub(crate) fn is_free(machine: &Machine) -> bool {
    machine.allocation.is_none()
        && machine.segment == Segment::Provisioning
        && !matches!(machine.phase, Phase::ReclaimPowerOff | Phase::ReclaimPorts)
}

/// Whether its word counts against that of others: an operator takes it by locking the machine.
fn is_believed(machine: &Machine) -> bool {
    !(is_free(machine) && machine.condition.state == Availability::Locked)
}

/// Others out of `ids` whose word counts at a switch.
fn rival<'a>(
    tables: &'a Tables,
    machine: MachineId,
    switch: &Switch,
    ids: impl IntoIterator<Item = &'a MachineId>,
) -> Option<MachineId> {
    let others = ids.into_iter().filter(|id| **id != machine);
    let mut others = others.filter_map(|id| tables.get::<Machine>(id));
    others
        .find(|other| other.partition.as_ref() == Some(&switch.partition) && is_believed(other))
        .map(|other| other.id)
}

/// The other machine at a port.
fn owner<'a>(
    tables: &'a Tables,
    machine: MachineId,
    (switch, port): Claim<'_>,
) -> Option<&'a Machine> {
    let at = (switch.id.clone(), port.to_owned());
    let id = tables.index().port_machine.get(&at)?;
    let owner = tables.get::<Machine>(id).filter(|_| *id != machine);
    owner.map(AsRef::as_ref)
}

fn is_at(link: &PortLink, (switch, port): Claim<'_>) -> bool {
    link.switch == switch.id && link.port == port
}

/// Whether a machine's claim stands.
pub(crate) fn judge(
    tables: &Tables,
    machine: &Machine,
    mac: MacAddr,
    claim: Claim<'_>,
) -> Result<(), ClaimRefused> {
    let (switch, port) = claim;
    let owner = owner(tables, machine.id, claim);
    if let Some(owner) = owner.filter(|owner| !is_free(owner)) {
        return Err(ClaimRefused::Taken(owner.id));
    }
    if !switch.hears {
        let at = (switch.id.clone(), port.to_owned());
        let claimants = tables.index().claimants.get(&at).into_iter().flatten();
        let rival = rival(tables, machine.id, switch, claimants);
        return rival.map_or(Ok(()), |other| Err(ClaimRefused::Contested(other)));
    }
    let heard = heard_on(switch, port);
    let Some(found) = heard.iter().find(|it| is_heard(machine.id, mac, it)) else {
        let has_it = machine.links.iter().any(|link| is_at(link, claim));
        return match heard {
            [] if has_it => Ok(()),
            [] => Err(ClaimRefused::Unheard),
            _ => Err(ClaimRefused::Others(show(heard))),
        };
    };
    if let Some(owner) = owner.filter(|owner| is_believed(owner)) {
        let mut cards = owner.hardware.nics.iter();
        if cards.any(|nic| heard.iter().any(|it| is_heard(owner.id, nic.mac, it))) {
            return Err(ClaimRefused::Taken(owner.id));
        }
    }
    match named(found) {
        Some(_) => Ok(()),
        None => namesake(tables, machine.id, switch, mac)
            .map_or(Ok(()), |other| Err(ClaimRefused::Contested(other))),
    }
}

/// Another machine that says it has a card of this address.
fn namesake(
    tables: &Tables,
    machine: MachineId,
    switch: &Switch,
    mac: MacAddr,
) -> Option<MachineId> {
    let holders = tables.index().card_machines.get(&mac).into_iter().flatten();
    rival(tables, machine, switch, holders)
}

/// Neighbours for people.
fn show(heard: &[Neighbour]) -> String {
    let one = |it: &Neighbour| {
        let address = addresses(it).next().map(|mac| mac.to_string());
        let name = named(it).map(|machine| format!("machine {machine}"));
        let words: Vec<_> = address.into_iter().chain(name).collect();
        match words.is_empty() {
            true => format!("{:.64}", it.system_name),
            false => words.join(" of "),
        }
    };
    let all: Vec<_> = heard.iter().take(4).map(one).collect();
    all.join(", ")
}

/// The cables that a machine has now. After a registration (`is_fresh`) what its cards hear is
/// all that they hear; else silence says nothing.
pub(crate) fn cables(tables: &Tables, machine: &Machine, is_fresh: bool) -> Vec<PortLink> {
    let is_free = is_free(machine);
    let mut found = match is_free {
        true => Vec::new(),
        false => machine.links.clone(),
    };
    for nic in &machine.hardware.nics {
        if found.iter().any(|link| is_of(link, nic)) {
            continue;
        }
        let claims = claims(tables, machine, nic);
        let is_used = |claim: Claim<'_>| {
            let mut links = found.iter().filter(|link| !link.unclaimed);
            links.any(|link| is_at(link, claim))
        };
        let stands = |claim: &&Claim<'_>| {
            !is_used(**claim) && judge(tables, machine, nic.mac, **claim).is_ok()
        };
        if let Some(claim) = claims.iter().find(stands) {
            found.retain(|link| !is_at(link, *claim));
            found.push(link(*claim, nic.mac, false));
        } else if is_free {
            found.extend(kept(tables, machine, nic, &claims, is_fresh).cloned());
        }
    }
    let strays = strays(tables, machine, &found);
    found.extend(strays);
    found
}

/// Whether it is a cable of this card that the machine knows of.
fn is_of(link: &PortLink, nic: &Nic) -> bool {
    link.mac == nic.mac && !link.unclaimed
}

/// The cable that a card had: it stays until another machine is proved to be there.
fn kept<'a>(
    tables: &Tables,
    machine: &'a Machine,
    nic: &Nic,
    claims: &[Claim<'_>],
    is_fresh: bool,
) -> Option<&'a PortLink> {
    let is_told = |link: &PortLink| match claims {
        [] => !is_fresh,
        _ => claims.iter().any(|claim| is_at(link, *claim)),
    };
    let mut links = machine.links.iter().filter(|link| is_of(link, nic));
    links.find(|link| is_told(link) && is_left(tables, machine, link))
}

pub(crate) fn link((switch, port): Claim<'_>, mac: MacAddr, unclaimed: bool) -> PortLink {
    PortLink {
        switch: switch.id.clone(),
        port: port.to_owned(),
        mac,
        unclaimed,
    }
}

/// Whether a port that the machine had was left to it.
fn is_left(tables: &Tables, machine: &Machine, link: &PortLink) -> bool {
    let at = (link.switch.clone(), link.port.clone());
    let owner = tables.index().port_machine.get(&at);
    owner.is_none_or(|owner| *owner == machine.id)
}

/// Ports without an owner where a switch hears a card that has no cable and heard nobody; of a
/// machine that somebody has, where it hears any card of it.
fn strays(tables: &Tables, machine: &Machine, found: &[PortLink]) -> Vec<PortLink> {
    let mut strays: Vec<PortLink> = Vec::new();
    let is_free = is_free(machine);
    for nic in &machine.hardware.nics {
        let is_wired = found.iter().any(|link| link.mac == nic.mac);
        if is_free && (is_wired || !claims(tables, machine, nic).is_empty()) {
            continue;
        }
        for claim in hearings(tables, machine, nic.mac) {
            let is_known = found.iter().chain(&strays).any(|link| is_at(link, claim));
            let is_anothers = owner(tables, machine.id, claim).is_some()
                || namesake(tables, machine.id, claim.0, nic.mac).is_some();
            if !is_known && !is_anothers {
                strays.push(link(claim, nic.mac, true));
            }
        }
    }
    strays
}

/// The ports at which switches hear a card of a machine.
pub(crate) fn hearings<'a>(tables: &'a Tables, machine: &Machine, mac: MacAddr) -> Vec<Claim<'a>> {
    let ports = tables.index().heard.get(&mac).into_iter().flatten();
    let found = ports.filter_map(|(id, port)| {
        let switch = tables.get::<Switch>(id)?;
        let is_here = machine.partition.as_ref() == Some(&switch.partition);
        let mut heard = heard_on(switch, port).iter();
        (is_here && heard.any(|it| is_heard(machine.id, mac, it)))
            .then_some((switch.as_ref(), port.as_str()))
    });
    found.collect()
}
