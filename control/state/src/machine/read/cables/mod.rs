//! Cables, judged by the reports of both ends.
//!
//! A machine claims a port if one of its NICs hears the switch there by LLDP. A switch hears a
//! machine if frames of one of its NICs arrive. A cable exists if both agree. If the switch's agent
//! cannot report neighbours, a claim stands as long as no other machine makes the same claim.
//! A third witness is the DHCP relay of the switch, which says at which port a card asked for its
//! lease: a claim of another port does not stand.
//!
//! Invariant: the ports of an allocated machine, or of one whose reclaim is not complete, stay its
//! own, whatever others claim or hear. Otherwise a forged LLDP frame could pull a port out of a
//! tenant's segment.

pub(crate) mod concerned;
pub(crate) mod issues;

use std::fmt;

use proto_types::{MacAddr, MachineId};

use crate::machine::entity::{Availability, Machine, Nic, Phase, PortLink, RelayedPort, Segment};
use crate::switch::entity::{Neighbour, Switch, addresses};
use crate::tables::Tables;

/// The reason why a claim does not stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClaimRefused {
    /// The switch hears no neighbour there.
    Unheard,
    /// The switch hears others there.
    Others(String),
    /// The port is another machine's.
    Taken(MachineId),
    /// The relay of a switch says that the card asked for its lease at another port.
    Relayed(RelayedPort),
    /// Another machine claims the same port, and nothing tells which of them is right.
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
            ClaimRefused::Relayed(at) => write!(
                f,
                "but it asked for its lease at {} {}, as the relay of {} says",
                at.switch, at.port, at.switch
            ),
            ClaimRefused::Contested(other) => write!(f, "and so does machine {other}"),
        }
    }
}

/// A port that a machine claims, or at which a switch hears it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimedPort<'a> {
    /// The switch.
    pub(crate) switch: &'a Switch,
    /// Name of its port.
    pub(crate) port: &'a str,
}

/// The ports of known switches that a NIC hears, in the order of its report.
pub(crate) fn claims<'a>(
    tables: &'a Tables,
    machine: &Machine,
    nic: &'a Nic,
) -> Vec<ClaimedPort<'a>> {
    let known = |neighbour: &'a Neighbour| {
        let switch = tables.get::<Switch>(&neighbour.system_name.parse().ok()?)?;
        let is_here = machine.partition.as_ref() == Some(&switch.partition);
        (is_here && switch.ports.contains_key(&neighbour.port_id)).then_some(ClaimedPort {
            switch,
            port: &neighbour.port_id,
        })
    };
    nic.neighbours.iter().filter_map(known).collect()
}

/// The machine id that a neighbour sends by LLDP. Hammer and installed systems send it.
fn named(neighbour: &Neighbour) -> Option<MachineId> {
    // Either field: senders differ in where they put the id.
    let names = [&neighbour.system_name, &neighbour.chassis_id];
    names.into_iter().find_map(|name| name.parse().ok())
}

/// `true` if the neighbour is this NIC of this machine. A neighbour that names another machine is
/// not, even at the same MAC address.
fn is_heard(machine: MachineId, mac: MacAddr, neighbour: &Neighbour) -> bool {
    addresses(neighbour).any(|heard| heard == mac)
        && named(neighbour).is_none_or(|name| name == machine)
}

/// Neighbours that a switch reports at a port.
fn heard_on<'a>(switch: &'a Switch, port: &str) -> &'a [Neighbour] {
    let port = switch.ports.get(port);
    let observed = port.and_then(|port| port.observed.as_ref());
    observed.map_or(&[], |observed| &observed.neighbours)
}

/// `true` if other machines may get its ports: it is not allocated, and its ports have left the
/// last tenant's segment.
pub(crate) fn is_free(machine: &Machine) -> bool {
    machine.allocation.is_none()
        && machine.segment == Segment::Provisioning
        && !matches!(machine.phase, Phase::ReclaimPowerOff | Phase::ReclaimPorts)
}

/// `true` if the machine's claims count against those of others. An operator who locks a free
/// machine takes that away.
fn is_believed(machine: &Machine) -> bool {
    !(is_free(machine) && machine.condition.state == Availability::Locked)
}

/// Another machine out of `ids` whose claims count at a switch.
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
    claim: ClaimedPort<'_>,
) -> Option<&'a Machine> {
    let at = (claim.switch.id.clone(), claim.port.to_owned());
    let id = tables.index().port_machine.get(&at)?;
    let owner = tables.get::<Machine>(id).filter(|_| *id != machine);
    owner.map(AsRef::as_ref)
}

/// `true` if a cable ends at this port.
fn is_at(link: &PortLink, claim: ClaimedPort<'_>) -> bool {
    link.switch == claim.switch.id && link.port == claim.port
}

/// Judges a machine's claim.
///
/// # Errors
/// The reason why the claim does not stand.
pub(crate) fn judge(
    tables: &Tables,
    machine: &Machine,
    mac: MacAddr,
    claim: ClaimedPort<'_>,
) -> Result<(), ClaimRefused> {
    let ClaimedPort { switch, port } = claim;
    let owner = owner(tables, machine.id, claim);
    // First of all: the port of a tenant's machine is never up for a judgement.
    if let Some(owner) = owner.filter(|owner| !is_free(owner)) {
        return Err(ClaimRefused::Taken(owner.id));
    }
    // The third witness can only refuse: that it agrees proves no cable.
    let claimed = link(claim, mac, false);
    if let Some(at) = machine.denied_by(&claimed) {
        return Err(ClaimRefused::Relayed(at.clone()));
    }
    // Without neighbours from the switch there is no second report: the claim stands alone, unless
    // another machine claims the same.
    if !switch.hears {
        let at = (switch.id.clone(), port.to_owned());
        let claimants = tables.index().claimants.get(&at).into_iter().flatten();
        let rival = rival(tables, machine.id, switch, claimants);
        return rival.map_or(Ok(()), |other| Err(ClaimRefused::Contested(other)));
    }
    let heard = heard_on(switch, port);
    let own = |neighbour: &&Neighbour| is_heard(machine.id, mac, neighbour);
    let Some(found) = heard.iter().find(own) else {
        // A port that falls silent keeps its cable: LLDP stops whenever a machine reboots.
        let has_it = machine.links.iter().any(|link| is_at(link, claim));
        return match heard {
            [] if has_it => Ok(()),
            [] => Err(ClaimRefused::Unheard),
            _ => Err(ClaimRefused::Others(show(heard))),
        };
    };
    if let Some(owner) = owner.filter(|owner| is_believed(owner)) {
        let mut cards = owner.hardware.nics.iter();
        let is_owners = |nic: &Nic| {
            let mut heard = heard.iter();
            heard.any(|neighbour| is_heard(owner.id, nic.mac, neighbour))
        };
        // Both are heard, through a hub say: the machine that was there first keeps the port.
        if cards.any(is_owners) {
            return Err(ClaimRefused::Taken(owner.id));
        }
    }
    // A bare MAC address is easily copied: it counts only if no other machine has such a NIC.
    match named(found) {
        // `is_heard` has made sure that the name is this machine's.
        Some(_) => Ok(()),
        None => namesake(tables, machine.id, switch, mac)
            .map_or(Ok(()), |other| Err(ClaimRefused::Contested(other))),
    }
}

/// Another machine that reports a NIC with this address.
fn namesake(
    tables: &Tables,
    machine: MachineId,
    switch: &Switch,
    mac: MacAddr,
) -> Option<MachineId> {
    let holders = tables.index().card_machines.get(&mac).into_iter().flatten();
    rival(tables, machine, switch, holders)
}

/// Neighbours as text, at most four.
fn show(heard: &[Neighbour]) -> String {
    let one = |neighbour: &Neighbour| {
        let address = addresses(neighbour).next().map(|mac| mac.to_string());
        let name = named(neighbour).map(|machine| format!("machine {machine}"));
        let words: Vec<_> = address.into_iter().chain(name).collect();
        match words.is_empty() {
            true => format!("{:.64}", neighbour.system_name),
            false => words.join(" of "),
        }
    };
    let all: Vec<_> = heard.iter().take(4).map(one).collect();
    all.join(", ")
}

/// The cables that a machine has now. `is_fresh` is `true` after a registration, whose list of
/// neighbours is complete; otherwise a missing neighbour says nothing.
pub(crate) fn cables(tables: &Tables, machine: &Machine, is_fresh: bool) -> Vec<PortLink> {
    // A machine in use keeps all of its links and may only gain some.
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
        let is_used = |claim: ClaimedPort<'_>| {
            let mut links = found.iter().filter(|link| !link.unclaimed);
            links.any(|link| is_at(link, claim))
        };
        let stands = |claim: &&ClaimedPort<'_>| {
            !is_used(**claim) && judge(tables, machine, nic.mac, **claim).is_ok()
        };
        if let Some(claim) = claims.iter().find(stands) {
            // The claim replaces the switch's word on the same port.
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

/// `true` if it is a cable of this NIC that the machine itself claims.
fn is_of(link: &PortLink, nic: &Nic) -> bool {
    link.mac == nic.mac && !link.unclaimed
}

/// The cable that a NIC had: it stays until another machine is proven to be there.
fn kept<'a>(
    tables: &Tables,
    machine: &'a Machine,
    nic: &Nic,
    claims: &[ClaimedPort<'_>],
    is_fresh: bool,
) -> Option<&'a PortLink> {
    // A NIC that hears nobody keeps its cable until the next registration, which is the first
    // complete list after a cable was pulled.
    let is_told = |link: &PortLink| match claims {
        [] => !is_fresh,
        _ => claims.iter().any(|claim| is_at(link, *claim)),
    };
    let mut links = machine.links.iter().filter(|link| is_of(link, nic));
    links.find(|link| is_told(link) && is_left(tables, machine, link))
}

/// The cable at a port.
pub(crate) fn link(claim: ClaimedPort<'_>, mac: MacAddr, unclaimed: bool) -> PortLink {
    PortLink {
        switch: claim.switch.id.clone(),
        port: claim.port.to_owned(),
        mac,
        unclaimed,
    }
}

/// `true` if no other machine got the port of this cable since.
fn is_left(tables: &Tables, machine: &Machine, link: &PortLink) -> bool {
    let at = (link.switch.clone(), link.port.clone());
    let owner = tables.index().port_machine.get(&at);
    owner.is_none_or(|owner| *owner == machine.id)
}

/// Ports without an owner at which a switch hears a NIC that has no cable and claims none. For a
/// machine in use: at which it hears any of its NICs. Recorded as unclaimed, they never enter a
/// tenant's segment.
fn strays(tables: &Tables, machine: &Machine, found: &[PortLink]) -> Vec<PortLink> {
    let mut strays: Vec<PortLink> = Vec::new();
    let is_free = is_free(machine);
    for nic in &machine.hardware.nics {
        let is_wired = found.iter().any(|link| link.mac == nic.mac);
        // A NIC that claims another port is settled there: an echo of it elsewhere is an issue to
        // report, and no second cable.
        if is_free && (is_wired || !claims(tables, machine, nic).is_empty()) {
            continue;
        }
        for claim in hearings(tables, machine, nic.mac) {
            let is_known = found.iter().chain(&strays).any(|link| is_at(link, claim));
            let is_anothers = owner(tables, machine.id, claim).is_some()
                || namesake(tables, machine.id, claim.switch, nic.mac).is_some();
            if !is_known && !is_anothers {
                strays.push(link(claim, nic.mac, true));
            }
        }
    }
    strays
}

/// The ports at which switches hear a NIC of a machine.
pub(crate) fn hearings<'a>(
    tables: &'a Tables,
    machine: &Machine,
    mac: MacAddr,
) -> Vec<ClaimedPort<'a>> {
    let ports = tables.index().heard.get(&mac).into_iter().flatten();
    let found = ports.filter_map(|(id, port)| {
        let switch = tables.get::<Switch>(id)?;
        let is_here = machine.partition.as_ref() == Some(&switch.partition);
        let mut heard = heard_on(switch, port).iter();
        (is_here && heard.any(|neighbour| is_heard(machine.id, mac, neighbour)))
            .then_some(ClaimedPort { switch, port })
    });
    found.collect()
}
