//! The end of what a node has for the present use of its machine.

use proto_types::MachineId;

use crate::node::entity::NodeRecord;
use crate::tables::Tx;

/// Ends the fields of an instance, so that the next user of the machine sees and deploys nothing of
/// them. Every command that takes a machine from a project, or gives it into other hands, calls it.
pub(crate) fn end_use(tx: &mut Tx<'_>, machine: MachineId) {
    let Ok(mut record) = tx.require::<NodeRecord>(&machine) else {
        return;
    };
    record.content = record.after_use();
    record.replaced_extra.clear();
    tx.update(record);
}
