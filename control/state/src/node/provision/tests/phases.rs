//! The states that phases say.

use super::{BEGIN, LATER, allocation, machine, record, shown};
use crate::machine::entity::{HoldCause, Phase};
use crate::node::entity::NodeContent;
use crate::node::provision::node_state;

#[test]
fn every_phase_has_its_state() {
    for (phase, is_begun, expected) in [
        (Phase::New, false, ("enroll", "", "")),
        (Phase::Wiping, false, ("cleaning", "available", "")),
        (Phase::Waiting, false, ("available", "", "")),
        (Phase::Installing, false, ("wait call-back", "active", "")),
        (Phase::Installing, true, ("deploying", "active", "")),
        (Phase::BootOrder, true, ("deploying", "active", "")),
        (Phase::Rebooting, true, ("deploying", "active", "")),
        (Phase::TenantPorts, true, ("deploying", "active", "")),
        (Phase::Running, true, ("active", "", "")),
        (Phase::ReclaimPowerOff, true, ("deleting", "available", "")),
        (Phase::ReclaimPorts, true, ("deleting", "available", "")),
        (Phase::ReclaimBoot, false, ("clean wait", "available", "")),
        (
            Phase::ReclaimRegister,
            false,
            ("clean wait", "available", ""),
        ),
        (
            Phase::Held(HoldCause::Install),
            true,
            ("deploy failed", "active", "why"),
        ),
        (
            Phase::Held(HoldCause::Wipe),
            false,
            ("clean failed", "available", "why"),
        ),
        (Phase::Held(HoldCause::Bmc), true, ("error", "", "why")),
        (Phase::Held(HoldCause::Ports), true, ("error", "", "why")),
    ] {
        let mut machine = machine(phase, BEGIN);
        machine.allocation = Some(allocation(is_begun));
        let found = node_state(&machine, None, LATER);
        assert_eq!(shown(&found), expected, "{phase} {is_begun}");
        assert_eq!(found.since, BEGIN, "{phase}");
    }
}

#[test]
fn a_retired_node_is_not_available() {
    let retired = record(NodeContent {
        retired: Some("old".to_owned()),
        ..NodeContent::default()
    });
    for (phase, expected) in [
        (Phase::Waiting, ("manageable", "", "")),
        (Phase::Wiping, ("cleaning", "available", "")),
        (Phase::Running, ("active", "", "")),
    ] {
        let found = node_state(&machine(phase, BEGIN), Some(&retired), LATER);
        assert_eq!(shown(&found), expected, "{phase}");
    }
}
