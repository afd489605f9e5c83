//! The drain of a switch: its traffic moves to the other switches of its machines.

use std::collections::BTreeSet;

use proto_errors::{Error, ErrorCode};
use proto_types::SwitchId;

use crate::catalog::entity::Partition;
use crate::machine::entity::{Machine, PortLink, Segment};
use crate::machine::read::{port_vni, switch_machines};
use crate::reply::{ApplyResult, Reply};
use crate::switch::command::DrainSwitch;
use crate::switch::entity::{Drain, Switch};
use crate::tables::{Tables, Tx};

/// Reasons that a refusal names; further ones are counted.
const REASONS_MAX: usize = 8;

/// Drains a switch, or puts it into service again.
pub(crate) fn set_drain(tx: &mut Tx<'_>, op: &DrainSwitch) -> ApplyResult {
    let mut switch: Switch = tx.require(&op.id)?;
    if switch.drain.is_some() == op.drained {
        return Ok(Reply::Switch(tx.save(switch)));
    }
    if !op.drained {
        switch.drain = None;
        return Ok(Reply::Switch(tx.update(switch)));
    }
    let found = Survey::of(tx.tables(), &switch, &op.silent);
    if !op.force && !found.reasons.is_empty() {
        return Err(refusal(&op.id, &found.reasons));
    }
    switch.drain = Some(Drain {
        at: tx.now,
        ports: found.ports_down,
    });
    Ok(Reply::Switch(tx.update(switch)))
}

fn refusal(id: &SwitchId, reasons: &[String]) -> Error {
    let shown: Vec<&str> = reasons
        .iter()
        .map(String::as_str)
        .take(REASONS_MAX)
        .collect();
    let mut text = format!("the traffic of switch \"{id}\" has no other way: ");
    text.push_str(&shown.join("; "));
    if reasons.len() > shown.len() {
        text.push_str(&format!("; and {} more", reasons.len() - shown.len()));
    }
    Error::new(ErrorCode::SwitchNotReady, text).object("switch", id)
}

/// The machines at a switch, as far as a drain concerns them.
#[derive(Default)]
struct Survey {
    /// Ports of bridged machines that have another way.
    ports_down: BTreeSet<String>,
    /// Why machines have no other way.
    reasons: Vec<String>,
}

impl Survey {
    fn of(tables: &Tables, switch: &Switch, silent: &BTreeSet<SwitchId>) -> Self {
        let partition = tables.get::<Partition>(&switch.partition);
        let has_evpn = partition.is_some_and(|partition| partition.has_evpn());
        let mut out = Self::default();
        for (port, machine) in switch_machines(tables, &switch.id) {
            // Without a tenant there is no traffic that must not be lost.
            let Some(allocation) = &machine.allocation else {
                continue;
            };
            // A bridged system does not listen to BGP: only a port that is down moves its bond.
            let is_routed = has_evpn && allocation.speaks_bgp();
            match obstacle(tables, switch, machine, silent, is_routed) {
                Some(reason) => out.reasons.push(reason),
                None if !is_routed && machine.segment == Segment::Tenant => {
                    out.ports_down.insert(port.to_owned());
                }
                None => {}
            }
        }
        out
    }
}

/// The reason why no other switch has the traffic of a machine. `None` means that one has it.
fn obstacle(
    tables: &Tables,
    switch: &Switch,
    machine: &Machine,
    silent: &BTreeSet<SwitchId>,
    is_routed: bool,
) -> Option<String> {
    let links = machine.links.iter().filter(|link| !link.unclaimed);
    let others = links.filter(|link| link.switch != switch.id);
    let mut first = None;
    for link in others {
        let wrong = link_obstacle(tables, machine, link, silent, is_routed)?;
        first.get_or_insert(wrong);
    }
    let alone = || format!("machine {} has no cable to another switch", machine.id);
    Some(first.map_or_else(alone, |wrong| format!("machine {}: {wrong}", machine.id)))
}

/// The reason why a cable cannot carry all traffic of its machine.
fn link_obstacle(
    tables: &Tables,
    machine: &Machine,
    link: &PortLink,
    silent: &BTreeSet<SwitchId>,
    is_routed: bool,
) -> Option<String> {
    let (id, port) = (&link.switch, &link.port);
    let Some(other) = tables.get::<Switch>(id) else {
        return Some(format!("switch {id} is not registered"));
    };
    if other.drain.is_some() {
        return Some(format!("switch {id} is drained itself"));
    }
    if silent.contains(id) {
        return Some(format!("nothing is heard of switch {id}"));
    }
    if let Some((_, error)) = &other.sync.error {
        return Some(format!("switch {id} is not as desired: {error}"));
    }
    let seen = other
        .ports
        .get(port)
        .and_then(|port| port.observed.as_ref());
    let Some(seen) = seen else {
        return Some(format!("switch {id} does not report port {port}"));
    };
    if !seen.admin_up || !seen.oper_up {
        return Some(format!("port {port} of switch {id} is down"));
    }
    if seen.vni != port_vni(tables, other, port) {
        return Some(format!(
            "port {port} of switch {id} is not in its place yet"
        ));
    }
    let sessions = other.health.sessions.iter();
    let mut of_port = sessions.filter(|session| session.neighbour == *port);
    let needs_session = is_routed && machine.segment == Segment::Tenant;
    if needs_session && !of_port.any(|session| session.is_established()) {
        return Some(format!("switch {id} has no BGP session on port {port}"));
    }
    None
}
