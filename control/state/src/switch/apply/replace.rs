//! One switch in the place of another: replaced after a failure, or its cables moved by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MacAddr, SwitchId};

use crate::machine::entity::{Machine, PortLink};
use crate::machine::read::switch_machines;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::switch::command::MigrateSwitch;
use crate::switch::entity::{ReplaceMode, Switch, SwitchPort};
use crate::tables::{Tables, Tx};

fn differ(switch: &SwitchId, message: String) -> Error {
    Error::new(ErrorCode::SwitchesDiffer, message).object("switch", switch)
}

/// The other switch of the rack, which has the same machines: the model for the replacement. More
/// than one candidate is refused: with the wrong one, ports would get into segments of other
/// tenants.
pub(crate) fn twin(tables: &Tables, old: &Switch, rack: &str) -> Result<Arc<Switch>, Error> {
    let way_out = format!(
        "or let it keep what is known of it: metalmesh switch replace {} --cancel",
        old.id
    );
    if old.rack != rack {
        let message = format!(
            "switch \"{}\" is to be replaced in rack \"{}\", but registers in rack \"{rack}\"",
            old.id, old.rack
        );
        return Err(differ(&old.id, message).hint(way_out));
    }
    let mut twins = tables.all::<Switch>().filter(|switch| {
        switch.id != old.id
            && switch.partition == old.partition
            && switch.rack == rack
            && switch.replace_mode == ReplaceMode::Operational
    });
    match (twins.next(), twins.next()) {
        (Some(twin), None) => Ok(Arc::clone(twin)),
        (first, _) => {
            let many = if first.is_some() {
                "more than one"
            } else {
                "no"
            };
            let message = format!(
                "switch \"{}\" cannot be replaced: rack \"{rack}\" has {many} other switch to \
                 set it up by",
                old.id
            );
            Err(differ(&old.id, message).hint(way_out))
        }
    }
}

/// Sets up ports that the old switch did not have like those of the twin.
pub(crate) fn adopt_ports(
    switch: &mut Switch,
    before: &BTreeMap<String, SwitchPort>,
    twin: &Switch,
) {
    for (name, port) in &mut switch.ports {
        let like = twin.ports.get(name).filter(|_| !before.contains_key(name));
        if let Some(like) = like {
            port.admin_up = like.admin_up;
        }
    }
}

/// Cables the machines of the twin to the ports of the same name here, unless the machine has a
/// cable to this switch or the port has another machine.
pub(crate) fn adopt_cables(tx: &mut Tx<'_>, switch: &Switch, twin: &Switch) {
    let at_twin: Vec<(String, Machine)> = switch_machines(tx.tables(), &twin.id)
        .filter(|(port, _)| switch.ports.contains_key(*port))
        .map(|(port, machine)| (port.to_owned(), Machine::clone(machine)))
        .collect();
    for (port, mut machine) in at_twin {
        let stands = |link: &PortLink| link.switch == switch.id;
        machine
            .links
            .retain(|link| !stands(link) || switch.ports.contains_key(&link.port));
        let place = (switch.id.clone(), port.clone());
        let is_taken = tx.tables().index().port_machine.contains_key(&place);
        if machine.links.iter().any(stands) || is_taken {
            tx.save(machine);
            continue;
        }
        if let Some(mac) = free_card(&machine) {
            // The operator's word on the twin counts, and the card boots by it next.
            machine.boot_ports.remove(&mac);
            machine.links.push(PortLink {
                switch: switch.id.clone(),
                port,
                mac,
                unclaimed: false,
            });
        }
        tx.save(machine);
    }
}

/// A network card of the machine without a cable.
fn free_card(machine: &Machine) -> Option<MacAddr> {
    let cards = machine.hardware.nics.iter().map(|nic| nic.mac);
    cards
        .into_iter()
        .find(|mac| machine.links.iter().all(|link| link.mac != *mac))
}

/// Moves every cable of one switch to the port of the same name of another.
pub(crate) fn migrate(tx: &mut Tx<'_>, op: &MigrateSwitch) -> ApplyResult {
    let from = tx.tables().require::<Switch>(&op.from)?.clone();
    let mut to: Switch = tx.require(&op.to)?;
    check_move(tx.tables(), &from, &to)?;
    let moved: Vec<(String, Machine)> = switch_machines(tx.tables(), &from.id)
        .map(|(port, machine)| (port.to_owned(), Machine::clone(machine)))
        .collect();
    for (port, _) in &moved {
        let wanted = from.ports.get(port).is_none_or(|port| port.admin_up);
        match to.ports.get_mut(port) {
            Some(port) => port.admin_up = wanted,
            None => {
                let message = format!(
                    "switch \"{}\" has no port \"{port}\", where switch \"{}\" has a machine",
                    to.id, from.id
                );
                return Err(differ(&to.id, message));
            }
        }
    }
    let to = tx.update(to);
    forget_neighbours(tx, &op.from);
    // A machine may be cabled to several ports; all of its links are moved together.
    let mut machines: BTreeMap<_, Machine> = BTreeMap::new();
    for (_, machine) in moved {
        machines.entry(machine.id).or_insert(machine);
    }
    for (_, mut machine) in machines {
        recable(&mut machine, &from.id, &to);
        tx.save(machine);
    }
    Ok(Reply::Switch(to))
}

/// Clears the neighbours of the old switch, which may be dead and never report again: its last
/// report would confirm the old cables.
fn forget_neighbours(tx: &mut Tx<'_>, id: &SwitchId) {
    let Ok(mut switch) = tx.require::<Switch>(id) else {
        return;
    };
    let ports = switch.ports.values_mut();
    for observed in ports.filter_map(|port| port.observed.as_mut()) {
        observed.neighbours.clear();
    }
    tx.save(switch);
}

/// Moves the links of a machine, and the neighbours that its cards reported: these would restore
/// the old links.
fn recable(machine: &mut Machine, from: &SwitchId, to: &Switch) {
    for link in machine.links.iter_mut().filter(|link| link.switch == *from) {
        link.switch = to.id.clone();
    }
    for at in machine
        .boot_ports
        .values_mut()
        .filter(|at| at.switch == *from)
    {
        at.switch = to.id.clone();
    }
    let heard = machine
        .hardware
        .nics
        .iter_mut()
        .flat_map(|nic| &mut nic.neighbours);
    for neighbour in heard.filter(|neighbour| neighbour.system_name == from.as_str()) {
        neighbour.system_name = to.id.to_string();
    }
}

fn check_move(tables: &Tables, from: &Switch, to: &Switch) -> CheckResult {
    if from.id == to.id {
        return Err(Error::invalid("new_switch", "must be another switch"));
    }
    if (&from.partition, &from.rack) != (&to.partition, &to.rack) {
        let message = format!(
            "switch \"{}\" is in partition \"{}\", rack \"{}\", and switch \"{}\" in partition \
             \"{}\", rack \"{}\"",
            from.id, from.partition, from.rack, to.id, to.partition, to.rack
        );
        return Err(differ(&to.id, message).hint("cables stay in their rack"));
    }
    match switch_machines(tables, &to.id).next() {
        None => Ok(()),
        Some((port, machine)) => {
            let message = format!(
                "switch \"{}\" has machine \"{}\" at port \"{port}\" already",
                to.id, machine.id
            );
            Err(differ(&to.id, message).hint("cables go to a switch that has none"))
        }
    }
}
