//! The end of stages: a stage is the word of a client's verb, and ends when the machine has done what the
//! verb asked for, in the same entry of the log.

use proto_types::MachineId;

use crate::machine::entity::{Machine, Phase};
use crate::node::entity::{NodeRecord, NodeStage, ProvisionState};
use crate::tables::{Kind, Tables, Tx};

/// Ends the stages of nodes whose machines the command took further.
pub(crate) fn end_stages(tx: &mut Tx<'_>) {
    if tx.tables().index().nodes.staged.is_empty() {
        return;
    }
    let keys = tx.touched_keys(Kind::Machine);
    let ids = keys.filter_map(|key| key.parse::<MachineId>().ok());
    let over: Vec<MachineId> = ids.filter(|id| is_over(tx.tables(), *id)).collect();
    for id in over {
        end_stage(tx, id);
    }
}

fn is_over(tables: &Tables, id: MachineId) -> bool {
    let machine = tables.get::<Machine>(&id);
    let record = tables.get::<NodeRecord>(&id);
    let stage = record.and_then(|record| record.content.stage.as_ref());
    let both = machine.zip(stage);
    both.is_some_and(|(machine, stage)| has_moved_on(machine, stage))
}

/// `true` if the machine's phase alone says the provision state from now on.
fn has_moved_on(machine: &Machine, stage: &NodeStage) -> bool {
    if stage.state.is_in_use() {
        return machine.allocation.is_none() || machine.is_leaving();
    }
    // A client has it provided: it is on offer once it is clean. One that is cleaned by hand, or that
    // was inspected, waits for the client's next verb.
    stage.state == ProvisionState::CleanWait
        && machine.phase == Phase::Waiting
        && !machine.dirty
        && machine.since != stage.phase_since
}

fn end_stage(tx: &mut Tx<'_>, id: MachineId) {
    let (Ok(mut record), Ok(mut machine)) =
        (tx.require::<NodeRecord>(&id), tx.require::<Machine>(&id))
    else {
        return;
    };
    record.content.stage = None;
    machine.withheld = record.content.withholds();
    // Counted as a change: a client that read the stage must not write it back.
    tx.update(record);
    tx.save(machine);
}

#[cfg(test)]
mod tests {
    use proto_types::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::machine::entity::HoldCause;

    const LATER: Timestamp = Timestamp::from_ms(7);

    fn machine(phase: Phase, dirty: bool, since: Timestamp) -> Machine {
        Machine {
            phase,
            dirty,
            since,
            ..Machine::seen(MachineId::new(Uuid::nil()), None, Timestamp::ZERO)
        }
    }

    fn stage(state: ProvisionState) -> NodeStage {
        NodeStage {
            state,
            since: Timestamp::ZERO,
            boot_id: String::new(),
            phase_since: Timestamp::ZERO,
            error: String::new(),
        }
    }

    #[test]
    fn a_machine_that_is_provided_waits_for_its_wipe() {
        use Phase::{Held, New, Waiting, Wiping};
        for (phase, dirty, since, over) in [
            (New, true, Timestamp::ZERO, false),
            (Wiping, true, LATER, false),
            (Held(HoldCause::Wipe), true, LATER, false),
            (Waiting, true, LATER, false),
            (Waiting, false, LATER, true),
            (Waiting, false, Timestamp::ZERO, false),
        ] {
            let machine = machine(phase, dirty, since);
            let is_over = has_moved_on(&machine, &stage(ProvisionState::CleanWait));
            assert_eq!(is_over, over, "{phase:?} {dirty} {since}");
            let by_hand = has_moved_on(&machine, &stage(ProvisionState::Cleaning));
            assert!(!by_hand, "{phase:?}");
        }
    }

    #[test]
    fn a_free_machine_is_not_serviced() {
        let free = machine(Phase::Waiting, false, LATER);
        assert!(has_moved_on(&free, &stage(ProvisionState::Servicing)));
        assert!(has_moved_on(&free, &stage(ProvisionState::RescueFailed)));
        for state in [
            ProvisionState::Manageable,
            ProvisionState::Inspecting,
            ProvisionState::CleanFailed,
        ] {
            assert!(!has_moved_on(&free, &stage(state)), "{state:?}");
        }
    }
}
