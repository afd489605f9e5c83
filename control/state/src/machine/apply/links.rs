//! Updates of cables between machines and switches, judged anew whenever one end reports something
//! else; see [`crate::machine::read::cables`].

use std::collections::BTreeSet;

use proto_types::MachineId;

use crate::machine::entity::Machine;
use crate::machine::read::cables::cables;
use crate::meta::label;
use crate::switch::entity::Switch;
use crate::tables::Tx;

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

/// Judges the cables of these machines again.
pub(crate) fn take_again(tx: &mut Tx<'_>, machines: BTreeSet<MachineId>) {
    for id in machines {
        if let Ok(mut machine) = tx.require::<Machine>(&id) {
            take(tx, &mut machine, false);
            tx.save(machine);
        }
    }
}
