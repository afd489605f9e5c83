//! Cables between machines and switches, as LLDP shows them.

use std::collections::BTreeSet;

use proto_types::SwitchId;

use crate::entities::{Machine, PortLink, Switch, label};
use crate::tables::Tx;

/// Cables, from what the NICs hear of switches that we know. Without any news the old ones stay.
pub(super) fn take(tx: &mut Tx<'_>, machine: &mut Machine) {
    let mut links = BTreeSet::new();
    let mut place = None;
    for nic in &machine.hardware.nics {
        for neighbour in &nic.neighbours {
            let Ok(id) = neighbour.system_name.parse() else {
                continue;
            };
            let Some(switch) = tx.get::<Switch>(&id) else {
                continue;
            };
            let here = machine.partition.as_ref() == Some(&switch.partition);
            if here && switch.ports.contains_key(&neighbour.port_id) {
                place = Some((switch.rack.clone(), switch.room.clone()));
                links.insert(PortLink {
                    switch: id,
                    port: neighbour.port_id.clone(),
                    mac: nic.mac,
                });
            }
        }
    }
    let Some((rack, room)) = place else { return };
    machine
        .meta
        .labels
        .insert(label::MACHINE_RACK.into(), rack.clone());
    (machine.rack, machine.room) = (rack, room);
    machine.links = links.into_iter().collect();
    // Whoever was there before has been unplugged.
    for link in &machine.links {
        let at = (link.switch.clone(), link.port.clone());
        let other = tx
            .tables()
            .index()
            .port_machine
            .get(&at)
            .filter(|id| **id != machine.id);
        let Some(mut other) = other
            .and_then(|id| tx.get::<Machine>(id))
            .map(|m| Machine::clone(m))
        else {
            continue;
        };
        other
            .links
            .retain(|old| (&old.switch, &old.port) != (&link.switch, &link.port));
        tx.save(other);
    }
}

/// A switch registered: machines that heard of it before now have a cable to it.
pub(super) fn take_again(tx: &mut Tx<'_>, id: &SwitchId) {
    let hears = |machine: &Machine| {
        let mut neighbours = machine.hardware.nics.iter().flat_map(|nic| &nic.neighbours);
        neighbours.any(|neighbour| neighbour.system_name == id.as_str())
    };
    let machines: Vec<_> = tx
        .tables()
        .all::<Machine>()
        .filter(|machine| hears(machine) && !machine.links.iter().any(|l| l.switch == *id))
        .map(|machine| Machine::clone(machine))
        .collect();
    for mut machine in machines {
        take(tx, &mut machine);
        tx.save(machine);
    }
}
