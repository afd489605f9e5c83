//! Machines that a project enrolled on its own word, once an agent sees them.
//!
//! A claim is not an observation: an id or an address that a project knows of does not make a machine
//! its own, and neither does being the first to say so. An administrator decides.

use crate::lease::entity::Lease;
use crate::machine::entity::{Capability, Machine, Tenure};
use crate::node::apply::record::forget_node;
use crate::tables::Tx;

/// Ends what a project said of a machine that an agent sees now: the machine is the site's, and a node
/// with defaults. The caller saves the machine. What an administrator said of it stays.
pub(crate) fn end_unconfirmed(tx: &mut Tx<'_>, machine: &mut Machine) {
    if !machine.unconfirmed {
        return;
    }
    tx.delete::<Lease>(&machine.id);
    forget_node(tx, machine.id);
    machine.tenure = Tenure::default();
    machine.capability = Capability::default();
    machine.unconfirmed = false;
    machine.enrolled = false;
    machine.withheld = false;
}
