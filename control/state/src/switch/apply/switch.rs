//! Switches.

use std::collections::{BTreeMap, BTreeSet};

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, SwitchId, Vni};

use crate::catalog::entity::Partition;
use crate::fields::{check_description, in_use};
use crate::levels::{SHARED_BOUNDS, feature_level};
use crate::machine::apply::{links, ports, reclaim};
use crate::machine::entity::Machine;
use crate::machine::read::cables::concerned::{concerned_by_port, concerned_by_switch};
use crate::machine::read::port_vni;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::switch::apply::{management_address, replace};
use crate::switch::command::{
    DeleteSwitch, RegisterSwitch, ReportSwitch, SetSwitchPort, UpdateSwitch,
};
use crate::switch::entity::{PlacedPort, ReplaceMode, Switch, SwitchPort};
use crate::switch::read::is_stale;
use crate::tables::{Tables, Tx};

/// Most ports of a switch; a registration with more is refused.
const PORTS_MAX: usize = 512;
/// Most switches of a partition; a further one is refused until one is deleted. An agent may
/// register a switch of any name.
const SWITCHES_MAX: usize = 1_000;

pub(crate) fn register(tx: &mut Tx<'_>, op: &RegisterSwitch) -> ApplyResult {
    tx.tables().require::<Partition>(&op.partition)?;
    if op.ports.len() > PORTS_MAX {
        return Err(Error::invalid(
            "ports",
            format!("must be at most {PORTS_MAX}"),
        ));
    }
    let known = tx.get::<Switch>(&op.id).map(|switch| Switch::clone(switch));
    let is_new = known.is_none();
    if is_new {
        check_new(tx.tables(), op)?;
    }
    let mut switch = known.unwrap_or_else(|| Switch::unknown(op.id.clone(), op.partition.clone()));
    if switch.partition != op.partition {
        return Err(Error::new(
            ErrorCode::AlreadyExists,
            format!("switch \"{}\" is in another partition already", op.id),
        )
        .object("switch", &op.id)
        .hint("delete it there, or give this one another name"));
    }
    let adopts = !is_new && switch.replace_mode == ReplaceMode::Replace;
    let twin = match adopts {
        true => Some(replace::twin(tx.tables(), &switch, &op.rack)?),
        false => None,
    };
    // The published contract lets agents of the published stack have one address: of theirs only
    // the first is a relay.
    let address = op.management_ip.filter(|_| op.hears);
    management_address::take(tx, &op.id, &op.partition, &op.rack, address)?;
    describe(&mut switch, op);
    let before = std::mem::take(&mut switch.ports);
    if feature_level(tx.tables()) >= SHARED_BOUNDS {
        keep_pins(&mut switch, &before, op);
    }
    switch.ports = merge_ports(&before, &mut switch.pins, op);
    if let Some(twin) = &twin {
        replace::adopt_ports(&mut switch, &before, twin);
    }
    let switch = if is_new {
        tx.create(switch)?
    } else {
        tx.save(switch)
    };
    let concerned = concerned_by_switch(tx.tables(), &switch);
    links::take_again(tx, concerned);
    if let Some(twin) = &twin {
        replace::adopt_cables(tx, &switch, twin);
    }
    Ok(Reply::Switch(switch))
}

/// Refuses a new switch whose name another has in upper or lower case (host names are equal in both,
/// RFC 4343), and one beyond the bound of its partition.
fn check_new(tables: &Tables, op: &RegisterSwitch) -> CheckResult {
    let (mut of_partition, name) = (0, op.id.as_str());
    for switch in tables.all::<Switch>() {
        if switch.id.as_str().eq_ignore_ascii_case(name) {
            let rule = format!("switch \"{}\" has the same name in another case", switch.id);
            let error = Error::new(ErrorCode::AlreadyExists, rule).object("switch", name);
            return Err(error.hint("register it under the name that it has, or delete that one"));
        }
        of_partition += usize::from(switch.partition == op.partition);
    }
    if of_partition < SWITCHES_MAX {
        return Ok(());
    }
    let rule = format!(
        "partition \"{}\" has {SWITCHES_MAX} switches already",
        op.partition
    );
    let error = Error::new(ErrorCode::TooMany, rule).object("partition", &op.partition);
    Err(error.hint("delete those that are gone: metalmesh switch delete"))
}

/// Takes over what the agent says of the switch itself.
fn describe(switch: &mut Switch, op: &RegisterSwitch) {
    switch.rack.clone_from(&op.rack);
    switch.room.clone_from(&op.room);
    switch.management_ip = op.management_ip;
    switch.vtep_ip = op.vtep_ip;
    switch.os_vendor.clone_from(&op.os_vendor);
    switch.os_version.clone_from(&op.os_version);
    switch.agent_version.clone_from(&op.agent_version);
    switch.hears = op.hears;
    switch.replace_mode = ReplaceMode::Operational;
}

/// Keeps the pins of the ports that a registration leaves out: when the agent registers them again,
/// still nobody knows whose machines are at them.
fn keep_pins(switch: &mut Switch, old: &BTreeMap<String, SwitchPort>, op: &RegisterSwitch) {
    let left_out = old.iter().filter(|(name, _)| !op.ports.contains_key(*name));
    let pins = left_out.filter_map(|(name, port)| Some((name.clone(), port.kept?)));
    switch.pins.extend(pins);
}

/// The ports of the registration. Ports that the switch had before keep their intent and their
/// last observation.
fn merge_ports(
    old: &BTreeMap<String, SwitchPort>,
    pins: &mut BTreeMap<String, Vni>,
    op: &RegisterSwitch,
) -> BTreeMap<String, SwitchPort> {
    op.ports
        .iter()
        .map(|(name, mac)| {
            let known = old.get(name);
            let pin = pins.remove(name);
            let port = SwitchPort {
                mac: *mac,
                identifier: op.identifiers.get(name).cloned(),
                admin_up: known.is_none_or(|port| port.admin_up),
                observed: known.and_then(|port| port.observed.clone()),
                kept: known.and_then(|port| port.kept).or(pin),
                placed: known.and_then(|port| port.placed.clone()),
            };
            (name.clone(), port)
        })
        .collect()
}

pub(crate) fn report(tx: &mut Tx<'_>, op: &ReportSwitch) -> ApplyResult {
    let mut switch = require(tx, &op.id)?;
    let newest = tx.tables().revision();
    if op.applied_generation > newest {
        // Accepted, it would make every later report stale, and reclaims would wait for ever.
        let rule = format!("must be a generation that control told, {newest} at most");
        return Err(Error::invalid("applied_generation", rule).object("switch", &op.id));
    }
    if is_stale(&switch, op) {
        return Ok(Reply::Switch(tx.save(switch)));
    }
    let sync = &mut switch.sync;
    sync.applied_term = op.applied_term;
    sync.applied_generation = op.applied_generation;
    sync.duration_ms = op.duration_ms;
    sync.at = tx.now;
    sync.error = op.error.clone().map(|error| (tx.now, error));
    if let Some(health) = &op.health {
        switch.health.clone_from(health);
    }
    let mut concerned = BTreeSet::new();
    for (name, seen) in &op.ports {
        let Some(port) = switch.ports.get_mut(name) else {
            continue;
        };
        let before = port.observed.replace(seen.clone()).unwrap_or_default();
        if before.neighbours != seen.neighbours {
            for heard in [&before.neighbours, &seen.neighbours] {
                concerned.extend(concerned_by_port(tx.tables(), &switch, name, heard));
            }
        }
    }
    if feature_level(tx.tables()) >= SHARED_BOUNDS {
        prove_places(tx, &mut switch);
    }
    let switch = tx.save(switch);
    if switch.hears {
        links::take_again(tx, concerned);
    }
    for id in waiting_for(tx, &switch) {
        reclaim::go_on(tx, id)?;
    }
    Ok(Reply::Switch(switch))
}

/// Notes which ports are where control wants them, and which stayed there although it no longer
/// does. All ports: a report leaves out those that did not change, also when the desired state did.
fn prove_places(tx: &Tx<'_>, switch: &mut Switch) {
    let wanted: Vec<Vni> = {
        let names = switch.ports.keys();
        names
            .map(|name| port_vni(tx.tables(), switch, name))
            .collect()
    };
    for (port, wanted) in switch.ports.values_mut().zip(wanted) {
        let seen = port.observed.as_ref().map_or(Vni::NONE, |seen| seen.vni);
        port.placed = PlacedPort::after(port.placed.take(), seen, wanted, tx.now);
    }
}

/// Machines at the switch that wait for a report of their ports.
fn waiting_for(tx: &Tx<'_>, switch: &Switch) -> BTreeSet<MachineId> {
    let tables = tx.tables();
    switch
        .ports
        .keys()
        .filter_map(|port| {
            tables
                .index()
                .port_machine
                .get(&(switch.id.clone(), port.clone()))
        })
        .filter_map(|id| tables.get::<Machine>(id))
        .filter(|machine| ports::awaits_report(machine))
        .map(|machine| machine.id)
        .collect()
}

fn require(tx: &Tx<'_>, id: &SwitchId) -> Result<Switch, Error> {
    tx.get::<Switch>(id)
        .map(|switch| Switch::clone(switch))
        .ok_or_else(|| {
            Error::new(
                ErrorCode::SwitchUnknown,
                format!("switch \"{id}\" did not register yet"),
            )
            .object("switch", id)
        })
}

pub(crate) fn update(tx: &mut Tx<'_>, op: &UpdateSwitch) -> ApplyResult {
    let mut switch: Switch = tx.require(&op.id)?;
    op.lock.check("switch", op.id.as_str(), &switch.meta)?;
    if let Some(description) = &op.description {
        check_description(description)?;
        switch.description.clone_from(description);
    }
    switch.replace_mode = op.replace_mode.unwrap_or(switch.replace_mode);
    let (partition, rack) = (&switch.partition, &switch.rack);
    management_address::take(tx, &op.id, partition, rack, op.management_ip)?;
    switch.management_ip = op.management_ip.or(switch.management_ip);
    switch.management_user = op.management_user.clone().or(switch.management_user);
    switch.console_command = op.console_command.clone().or(switch.console_command);
    if let Some(labels) = &op.labels {
        labels.apply(&mut switch.meta.labels)?;
    }
    Ok(Reply::Switch(tx.update(switch)))
}

pub(crate) fn set_port(tx: &mut Tx<'_>, op: &SetSwitchPort) -> ApplyResult {
    let mut switch: Switch = tx.require(&op.id)?;
    // An administrator who sets a port knows what is cabled to it: the hold after a restore ends.
    let is_released = switch.release_pin(&op.port);
    let port = switch.ports.get_mut(&op.port);
    let port = port.ok_or_else(|| {
        let name = format!("{}/{}", op.id, op.port);
        Error::not_found("switch port", name)
    })?;
    if port.admin_up == op.admin_up && !is_released {
        return Ok(Reply::Switch(tx.save(switch)));
    }
    port.admin_up = op.admin_up;
    Ok(Reply::Switch(tx.update(switch)))
}

pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteSwitch) -> ApplyResult {
    let switch = tx.tables().require::<Switch>(&op.id)?.clone();
    let cabled: BTreeSet<_> = switch
        .ports
        .keys()
        .filter_map(|port| {
            tx.tables()
                .index()
                .port_machine
                .get(&(op.id.clone(), port.clone()))
                .copied()
        })
        .collect();
    if let Some(machine) = cabled.first().filter(|_| !op.force) {
        return Err(
            in_use("switch", op.id.as_str(), "machine", &machine.to_string())
                .hint("move its machines, or repeat it with force"),
        );
    }
    for id in cabled {
        let mut machine: Machine = tx.require(&id)?;
        machine.links.retain(|link| link.switch != op.id);
        machine.boot_ports.retain(|_, at| at.switch != op.id);
        tx.save(machine);
        // The reclaim must not wait for a report of a switch that will never come.
        reclaim::go_on(tx, id)?;
    }
    tx.delete::<Switch>(&op.id);
    Ok(Reply::Switch(switch))
}
