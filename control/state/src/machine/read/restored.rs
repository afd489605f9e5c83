//! Comparison of a restored state with what was observed since the backup.
//!
//! The state lacks what happened after the backup. A machine that was allocated since is free in
//! it, and silent: a judgement by time would power-cycle and wipe a tenant's machine. So until an
//! operator has compared the two, no silence is judged, no life-cycle order goes out, no installer
//! boots, no machine is on offer and no switch gets new settings.

use std::collections::BTreeSet;

use proto_types::{SwitchId, Timestamp, Vni};

use crate::machine::entity::{Availability, EventLog, Machine, Phase};
use crate::machine::read::vni_of_machine;
use crate::switch::entity::Switch;
use crate::tables::Tables;

/// A machine after a restore.
#[derive(Debug, Clone, Copy)]
pub struct RestoredMachine<'a> {
    /// The machine of the backup, with what was reported since.
    pub machine: &'a Machine,
    /// Its events, including those after the restore.
    pub log: Option<&'a EventLog>,
    /// `true` if anything was heard of it since the backup, possibly from others.
    pub is_observed: bool,
    /// `true` if it is proven to be what the backup knows: a credential of the backup was used for
    /// it since, or it runs for its tenant and its switches report its ports in that tenant's
    /// segment.
    pub is_proven: bool,
}

impl RestoredMachine<'_> {
    /// `true` if it has to be locked: a tenant may have got it after the backup.
    pub fn must_be_locked(&self) -> bool {
        !self.is_proven && self.machine.condition.state != Availability::Locked
    }
}

/// Every machine, with what was observed of it since the backup was made.
pub fn restored_machines(
    tables: &Tables,
    made_at: Timestamp,
) -> impl Iterator<Item = RestoredMachine<'_>> {
    tables.all::<Machine>().map(move |machine| {
        let log = tables.get::<EventLog>(&machine.id).map(AsRef::as_ref);
        let is_confirmed = log.is_some_and(|log| log.confirmed_at.is_some());
        RestoredMachine {
            machine,
            log,
            is_observed: log.is_some_and(|log| log.last_event_time > made_at),
            is_proven: is_confirmed || is_in_place(tables, machine, made_at),
        }
    })
}

/// `true` if a tenant's machine runs where the backup knows it, as its switches report.
fn is_in_place(tables: &Tables, machine: &Machine, made_at: Timestamp) -> bool {
    let is_at_home = |switch: &SwitchId, port: &str| {
        let switch = tables.get::<Switch>(switch);
        switch.is_some_and(|switch| {
            let known = vni_of_machine(tables, switch, port);
            // An isolated port proves nothing: any machine may be behind it.
            known != Vni::NONE && seen_vni(switch, port, made_at) == Some(known)
        })
    };
    let mut links = machine.links.iter();
    machine.phase == Phase::Running
        && !machine.links.is_empty()
        && links.all(|link| is_at_home(&link.switch, &link.port))
}

/// The segment that a switch reported a port in since the backup. Agents of the published stack
/// report none.
fn seen_vni(switch: &Switch, port: &str, made_at: Timestamp) -> Option<Vni> {
    let is_fresh = switch.hears && switch.sync.at > made_at;
    let observed = switch.ports.get(port)?.observed.as_ref();
    observed.filter(|_| is_fresh).map(|observed| observed.vni)
}

/// Switches that report the segments of their ports, and have not done so since the backup.
pub fn silent_switches(tables: &Tables, made_at: Timestamp) -> impl Iterator<Item = &SwitchId> {
    let switches = tables.all::<Switch>();
    let silent = switches.filter(move |switch| switch.hears && switch.sync.at <= made_at);
    silent.map(|switch| &switch.id)
}

/// A port that stays as it is when the state is reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPort<'a> {
    /// The switch.
    pub switch: &'a Switch,
    /// Name of the port.
    pub port: &'a str,
    /// The machine that the backup knows there.
    pub machine: Option<&'a Machine>,
    /// The segment that it would get.
    pub known: Vni,
    /// The segment that it keeps; [`Vni::NONE`] isolates it.
    pub kept: Vni,
}

/// Ports that the state would move although nothing proves that the machine at them is what the
/// backup knows. They stay in the segment in which their switch sees them. A switch that does not
/// tell segments has the ports of free machines isolated: a tenant may have got them.
pub fn kept_ports(tables: &Tables, made_at: Timestamp) -> Vec<KeptPort<'_>> {
    let proven = restored_machines(tables, made_at).filter(|found| found.is_proven);
    let proven: BTreeSet<_> = proven.map(|found| found.machine.id).collect();
    let ports = tables.all::<Switch>().flat_map(|switch| {
        let names = switch.ports.keys();
        names.map(move |name| (switch, name))
    });
    let machines = &tables.index().port_machine;
    ports
        .filter_map(|(switch, port)| {
            let id = machines.get(&(switch.id.clone(), port.clone()));
            let machine = id.and_then(|id| tables.get::<Machine>(id));
            let machine = machine.map(AsRef::as_ref);
            // A proven machine's ports may follow the state, which is right about it.
            if machine.is_some_and(|machine| proven.contains(&machine.id)) {
                return None;
            }
            let known = vni_of_machine(tables, switch, port);
            let kept = if switch.hears {
                // Pinned even where it is in the right segment: a later change of the machine's
                // cable or phase must not move the port of an unproven machine.
                let is_moved = |seen: &Vni| machine.is_some() || *seen != known;
                seen_vni(switch, port, made_at).filter(is_moved)
            } else {
                // The switch does not tell the port's segment. An allocated machine's goes to its
                // tenant's segment, which is the one that the backup knows; a free machine's must
                // not go to provisioning.
                machine
                    .filter(|machine| machine.allocation.is_none())
                    .map(|_| Vni::NONE)
            };
            kept.map(|kept| KeptPort {
                switch,
                port,
                machine,
                known,
                kept,
            })
        })
        .collect()
}
