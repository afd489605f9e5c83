//! The states that stages say, and their ends.

use proto_types::Timestamp;

use super::{BEGIN, LATER, allocation, machine, record, shown};
use crate::machine::entity::{Bmc, HoldCause, Phase};
use crate::node::entity::{NodeContent, NodeRecord, NodeStage, ProvisionState};
use crate::node::provision::node_state;

const MINUTE_MS: u64 = 60_000;

/// A node in a stage, and what was seen of its machine at the time of the verb.
fn in_stage(state: ProvisionState) -> NodeRecord {
    record(NodeContent {
        stage: Some(NodeStage {
            state,
            since: BEGIN,
            boot_id: "first".to_owned(),
            phase_since: BEGIN,
            error: "said so".to_owned(),
        }),
        ..NodeContent::default()
    })
}

/// A stage, the machine's phase and the time at which it entered it, minutes since the verb, and the
/// state that follows.
type StageCase = (
    ProvisionState,
    Phase,
    Timestamp,
    u64,
    (&'static str, &'static str, &'static str),
);

const HELD_WIPE: Phase = Phase::Held(HoldCause::Wipe);
const NOT_BOOTED: &str = "the machine did not boot the installer within 30 minutes: see its events, \
                          and the orders of its BMC";

/// The stages of the free side, on machines that nobody uses.
const FREE: [StageCase; 19] = {
    use ProvisionState as S;
    [
        (
            S::Manageable,
            Phase::Waiting,
            BEGIN,
            99,
            ("manageable", "", "said so"),
        ),
        (
            S::Manageable,
            Phase::Wiping,
            LATER,
            99,
            ("manageable", "", "said so"),
        ),
        (
            S::AdoptFailed,
            Phase::Waiting,
            BEGIN,
            99,
            ("adopt failed", "active", "said so"),
        ),
        (
            S::InspectFailed,
            Phase::Waiting,
            LATER,
            99,
            ("inspect failed", "manageable", "said so"),
        ),
        (
            S::CleanFailed,
            Phase::New,
            BEGIN,
            99,
            ("clean failed", "manageable", "said so"),
        ),
        (
            S::CleanHold,
            Phase::Waiting,
            BEGIN,
            99,
            ("clean hold", "manageable", "said so"),
        ),
        // A manual clean: wiped once the machine has come back to waiting.
        (
            S::Cleaning,
            Phase::Waiting,
            BEGIN,
            1,
            ("cleaning", "manageable", ""),
        ),
        (
            S::Cleaning,
            Phase::Waiting,
            BEGIN,
            30,
            ("clean failed", "manageable", NOT_BOOTED),
        ),
        (
            S::Cleaning,
            Phase::Wiping,
            LATER,
            99,
            ("cleaning", "manageable", ""),
        ),
        (
            S::Cleaning,
            Phase::Waiting,
            LATER,
            99,
            ("manageable", "", ""),
        ),
        (
            S::Cleaning,
            HELD_WIPE,
            LATER,
            99,
            ("clean failed", "manageable", "why"),
        ),
        // Put on offer before it ever booted.
        (
            S::CleanWait,
            Phase::New,
            BEGIN,
            29,
            ("clean wait", "available", ""),
        ),
        (
            S::CleanWait,
            Phase::New,
            BEGIN,
            30,
            ("clean failed", "available", NOT_BOOTED),
        ),
        (
            S::CleanWait,
            Phase::Wiping,
            LATER,
            99,
            ("cleaning", "available", ""),
        ),
        (
            S::CleanWait,
            Phase::Waiting,
            LATER,
            99,
            ("available", "", ""),
        ),
        (
            S::InspectWait,
            Phase::Waiting,
            LATER,
            29,
            ("inspect wait", "manageable", ""),
        ),
        (
            S::InspectWait,
            Phase::Waiting,
            LATER,
            30,
            ("inspect failed", "manageable", NOT_BOOTED),
        ),
        // No verb leaves a node there.
        (S::Rescue, Phase::Waiting, BEGIN, 1, ("available", "", "")),
        (
            S::ServiceHold,
            Phase::Waiting,
            BEGIN,
            1,
            ("available", "", ""),
        ),
    ]
};

#[test]
fn a_stage_lasts_until_the_machine_has_moved_on() {
    for (stage, phase, since, minutes, expected) in FREE {
        let mut machine = machine(phase, since);
        machine.boot_id = "first".to_owned();
        machine.dirty = phase != Phase::Waiting;
        let now = BEGIN.plus_ms(minutes * MINUTE_MS);
        let found = node_state(&machine, Some(&in_stage(stage)), now);
        assert_eq!(shown(&found), expected, "{stage:?} {phase} {minutes}");
        // Whoever uses the machine meanwhile is shown what happens to it.
        machine.allocation = Some(allocation(true));
        let used = node_state(&machine, Some(&in_stage(stage)), now);
        assert_eq!(used, node_state(&machine, None, now), "{stage:?} {phase}");
    }
}

#[test]
fn an_inspection_ends_with_the_next_registration() {
    for (boot_id, expected) in [
        ("first", "inspect wait"),
        ("", "inspect wait"),
        ("second", "manageable"),
    ] {
        let mut machine = machine(Phase::Waiting, BEGIN);
        machine.boot_id = boot_id.to_owned();
        let stage = in_stage(ProvisionState::InspectWait);
        let found = node_state(&machine, Some(&stage), BEGIN.plus_ms(1));
        assert_eq!(found.state.as_str(), expected, "{boot_id}");
    }
}

#[test]
fn a_node_is_verified_by_a_reading_of_its_bmc() {
    let read = |updated_at| {
        Some(Bmc {
            updated_at,
            ..Bmc::default()
        })
    };
    for (phase, bmc, after_ms, expected, target) in [
        (Phase::New, None, 0, "verifying", "manageable"),
        (
            Phase::New,
            read(Timestamp::ZERO),
            59_999,
            "verifying",
            "manageable",
        ),
        (Phase::New, read(Timestamp::ZERO), 60_000, "enroll", ""),
        (Phase::New, None, 60_000, "enroll", ""),
        (Phase::New, read(BEGIN), 0, "manageable", ""),
        (Phase::New, read(BEGIN), 99 * MINUTE_MS, "manageable", ""),
        (Phase::Waiting, None, 99 * MINUTE_MS, "manageable", ""),
    ] {
        let mut machine = machine(phase, BEGIN);
        machine.bmc = bmc;
        let stage = in_stage(ProvisionState::Verifying);
        let found = node_state(&machine, Some(&stage), BEGIN.plus_ms(after_ms));
        let (state, its_target, error) = shown(&found);
        assert_eq!(
            (state, its_target),
            (expected, target),
            "{phase} {after_ms}"
        );
        assert_eq!(error.is_empty(), expected != "enroll", "{phase} {after_ms}");
    }
}

#[test]
fn a_hold_of_service_ends_with_the_system_that_ran() {
    for (stage, phase, since, expected) in [
        (
            ProvisionState::ServiceHold,
            Phase::Running,
            BEGIN,
            "service hold",
        ),
        (
            ProvisionState::ServiceFailed,
            Phase::Running,
            BEGIN,
            "service failed",
        ),
        (ProvisionState::ServiceHold, Phase::Running, LATER, "active"),
        (
            ProvisionState::ServiceHold,
            Phase::ReclaimPowerOff,
            LATER,
            "deleting",
        ),
        (
            ProvisionState::ServiceFailed,
            Phase::Waiting,
            LATER,
            "available",
        ),
    ] {
        let mut machine = machine(phase, since);
        machine.allocation = (phase != Phase::Waiting).then(|| allocation(true));
        let found = node_state(&machine, Some(&in_stage(stage)), LATER);
        assert_eq!(found.state.as_str(), expected, "{stage:?} {phase}");
    }
}
