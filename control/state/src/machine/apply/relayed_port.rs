//! The word of a switch's relay on the port of a card: one more witness for a cable.

use crate::levels::{RELAYED_PORTS, feature_level};
use crate::machine::command::MachineSeen;
use crate::machine::entity::{Machine, Segment};
use crate::switch::entity::Switch;
use crate::tables::Tx;

/// Takes the port that a boot request came in at. Returns `true` if that is news.
///
/// A boot without such a word takes the card's old one away: it may have been moved since.
pub(super) fn note(tx: &Tx<'_>, machine: &mut Machine, op: &MachineSeen) -> bool {
    // A node below this level drops the word when it reads the command.
    if feature_level(tx.tables()) < RELAYED_PORTS {
        return false;
    }
    // On a tenant's port such a request is the tenant's own, or forged elsewhere: what was said
    // before the ports were handed over stays.
    if machine.segment != Segment::Provisioning {
        return false;
    }
    // Another address may be a stranger's in this machine's name.
    let Some(mac) = op.mac.filter(|mac| machine.macs().contains(mac)) else {
        return false;
    };
    let before = machine.boot_ports.get(&mac).cloned();
    match &op.relayed {
        None => {
            machine.boot_ports.remove(&mac);
        }
        Some(at) => {
            let switch = tx.get::<Switch>(&at.switch);
            let here = switch.filter(|switch| switch.partition == op.partition);
            if here.is_some_and(|switch| switch.ports.contains_key(&at.port)) {
                machine.boot_ports.insert(mac, at.clone());
            }
        }
    }
    before.as_ref() != machine.boot_ports.get(&mac)
}
