//! Updates of cables between machines and switches, judged anew whenever one end reports something
//! else; see [`crate::machine::read::cables`].

use std::collections::BTreeSet;

use proto_types::{MachineId, SwitchId};

use crate::machine::entity::Machine;
use crate::machine::read::cables::cables;
use crate::meta::label;
use crate::switch::entity::{Neighbour, Switch, addresses};
use crate::tables::{Tables, Tx};

/// Sets the cables of a machine. `is_fresh` is `true` after its registration.
pub(crate) fn take(tx: &mut Tx<'_>, machine: &mut Machine, is_fresh: bool) {
    // A port that only the switch reports does not place the machine in a rack: a forged frame
    // could move it there.
    let links = cables(tx.tables(), machine, is_fresh);
    let claimed = links.iter().find(|link| !link.unclaimed);
    if let Some(switch) = claimed.and_then(|link| tx.get::<Switch>(&link.switch)) {
        let (rack, room) = (switch.rack.clone(), switch.room.clone());
        let labels = &mut machine.meta.labels;
        labels.insert(label::MACHINE_RACK.into(), rack.clone());
        (machine.rack, machine.room) = (rack, room);
    }
    machine.links = links;
    // A port has one machine: the one that had it before has been unplugged. Left in place, its
    // link would put the port into its segment.
    for link in &machine.links {
        let at = (link.switch.clone(), link.port.clone());
        let other = tx.tables().index().port_machine.get(&at).copied();
        let other = other.filter(|id| *id != machine.id);
        let Some(mut other) = other.and_then(|id| tx.require::<Machine>(&id).ok()) else {
            continue;
        };
        other
            .links
            .retain(|old| (&old.switch, &old.port) != (&link.switch, &link.port));
        tx.save(other);
    }
}

/// Machines with a claim on a port or card that this machine claims too: a change of this one may
/// decide their claims. Callers collect them before and after the change, because what the machine
/// no longer claims concerns others as well.
pub(crate) fn concerned(tables: &Tables, machine: &Machine) -> BTreeSet<MachineId> {
    let index = tables.index();
    let mut found = BTreeSet::new();
    let links = machine.links.iter();
    for (switch, port) in links.map(|link| (link.switch.as_str(), &link.port)).chain(
        machine.hardware.nics.iter().flat_map(|nic| {
            let heard = nic.neighbours.iter();
            heard.map(|neighbour| (neighbour.system_name.as_str(), &neighbour.port_id))
        }),
    ) {
        if let Ok(switch) = switch.parse() {
            let claimants = index.claimants.get(&(switch, port.clone()));
            found.extend(claimants.into_iter().flatten());
        }
    }
    for nic in &machine.hardware.nics {
        found.extend(index.card_machines.get(&nic.mac).into_iter().flatten());
    }
    found.remove(&machine.id);
    found
}

/// Judges the cables of these machines again.
pub(crate) fn take_again(tx: &mut Tx<'_>, machines: BTreeSet<MachineId>) {
    for id in machines {
        if let Ok(mut machine) = tx.require::<Machine>(&id) {
            take(tx, &mut machine, false);
            tx.save(machine);
        }
    }
}

/// Machines that claim a port of a switch, or that the switch hears.
pub(crate) fn concerned_by_switch(tables: &Tables, switch: &Switch) -> BTreeSet<MachineId> {
    // The empty name comes before every port of the switch.
    let from: (SwitchId, String) = (switch.id.clone(), String::new());
    let claimed = tables.index().claimants.range(from..);
    let claimed = claimed.take_while(|((at, _), _)| *at == switch.id);
    let mut found: BTreeSet<_> = claimed
        .flat_map(|(_, machines)| machines)
        .copied()
        .collect();
    let observed = switch
        .ports
        .values()
        .filter_map(|port| port.observed.as_ref());
    for seen in observed {
        found.extend(holders(tables, &seen.neighbours));
    }
    found
}

/// Machines that claim a port, or that are heard there.
pub(crate) fn concerned_by_port(
    tables: &Tables,
    switch: &SwitchId,
    port: &str,
    heard: &[Neighbour],
) -> BTreeSet<MachineId> {
    let at = (switch.clone(), port.to_owned());
    let claimants = tables.index().claimants.get(&at).into_iter().flatten();
    claimants.copied().chain(holders(tables, heard)).collect()
}

/// Machines with a NIC among these neighbours.
fn holders<'a>(tables: &'a Tables, heard: &'a [Neighbour]) -> impl Iterator<Item = MachineId> + 'a {
    let cards = heard.iter().flat_map(addresses);
    cards
        .filter_map(|mac| tables.index().card_machines.get(&mac))
        .flatten()
        .copied()
}
