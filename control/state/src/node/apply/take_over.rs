//! A machine takes over the node that an operator enrolled for it before it was seen.
//!
//! Clients enrol a node with an id of their own and describe its cards. The machine has another id, that
//! of its firmware: at its first registration it is recognised by a card. That goes for nodes which the
//! site enrolled or confirmed: an address that a project knows of does not give it the machine.

use proto_types::MachineId;

use crate::lease::entity::Lease;
use crate::machine::entity::{Availability, EventLog, Machine};
use crate::node::apply::record::move_children;
use crate::node::entity::NodeRecord;
use crate::pool::entity::PoolHost;
use crate::tables::{Tables, Tx};

/// Takes the cards of a machine out of the nodes that projects enrolled on their own word: the cards are
/// here, and whoever says more about them has no part in the machine.
pub(crate) fn take_cards(tx: &mut Tx<'_>, machine: &Machine) {
    for nic in &machine.hardware.nics {
        let holder = tx.tables().index().nodes.ports.get(&nic.mac).copied();
        let Some(id) = holder.filter(|id| is_unconfirmed(tx.tables(), id)) else {
            continue;
        };
        if let Ok(mut record) = tx.require::<NodeRecord>(&id) {
            record.content.ports.remove(&nic.mac);
            tx.update(record);
        }
    }
}

fn is_unconfirmed(tables: &Tables, id: &MachineId) -> bool {
    let machine = tables.get::<Machine>(id);
    machine.is_some_and(|machine| machine.unconfirmed)
}

/// Gives a machine the node that was enrolled for one of its cards, with its owner, lease, pool, class
/// and traits. The record of the enrolled machine ends. The caller saves the machine.
pub(crate) fn take_over(tx: &mut Tx<'_>, machine: &mut Machine) {
    let Some(enrolled) = enrolled_for(tx.tables(), machine) else {
        return;
    };
    let (old, id) = (enrolled.id, machine.id);
    let Ok(mut record) = tx.require::<NodeRecord>(&old) else {
        return;
    };
    // Described as a part of the machine that it turns out to be.
    record.content.parent = record.content.parent.filter(|parent| *parent != id);
    tx.delete::<NodeRecord>(&old);
    tx.delete::<EventLog>(&old);
    tx.delete::<Machine>(&old);
    if let Some(lease) = tx.delete::<Lease>(&old) {
        tx.save(Lease {
            machine: id,
            ..Lease::clone(&lease)
        });
    }
    if let Some(host) = tx.delete::<PoolHost>(&old) {
        tx.save(PoolHost {
            machine: id,
            ..PoolHost::clone(&host)
        });
    }
    move_children(tx, old, Some(id));
    machine.enrolled = true;
    machine.withheld = record.content.withholds();
    machine.tenure = enrolled.tenure;
    machine.pool = enrolled.pool;
    if machine.capability.is_default() {
        machine.capability = enrolled.capability;
    }
    if machine.condition.state == Availability::Available {
        machine.condition = enrolled.condition;
    }
    // Under both ids clients find it from now on.
    tx.update(NodeRecord {
        machine: id,
        alias: Some(old.uuid()),
        ..record
    });
}

/// The enrolled machine that describes a card of this one. `None` also means that this one is a node of
/// its own, or somebody's: nobody takes it away by a description.
fn enrolled_for(tables: &Tables, machine: &Machine) -> Option<Machine> {
    let is_nobodys =
        machine.tenure.is_default() && machine.pool.is_none() && machine.allocation.is_none();
    if !is_nobodys || tables.get::<NodeRecord>(&machine.id).is_some() {
        return None;
    }
    let mut cards = machine.hardware.nics.iter();
    cards.find_map(|nic| {
        let id = tables.index().nodes.ports.get(&nic.mac)?;
        let found = tables.get::<Machine>(id)?;
        let is_believed = found.is_unseen() && !found.unconfirmed;
        is_believed.then(|| Machine::clone(found))
    })
}
