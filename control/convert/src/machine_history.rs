//! The history of a machine, filtered for its viewer.
//!
//! A machine keeps its events when it passes from tenant to tenant. A tenant sees only events since
//! its own allocation, without names of users; administrators see all.

use control_state::{self as state, EventKind, EventLog, Machine, Phase, Tables};
use proto_public::api::v2;

use super::enums::{availability, event_kind};
use super::time;

/// Longest description of the contract, characters.
const DESCRIPTION_MAX: usize = 256;
/// The reason of a release as a tenant reads it: an administrator may have ordered it.
const RELEASED: &str = "the machine was freed";

/// The viewer of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    /// An administrator.
    Admin,
    /// A member of the project that has the machine.
    Tenant,
}

/// The condition of a machine. Its description is that of an administrator, else the reason of the
/// phase. A held machine is never "available".
pub(super) fn condition(
    tables: &Tables,
    machine: &Machine,
    viewer: Viewer,
) -> v2::MachineCondition {
    let held = matches!(machine.phase, Phase::Held(_));
    let state = match machine.condition.state {
        state::Availability::Available if held => state::Availability::Tainted,
        state => state,
    };
    let is_tenant = viewer == Viewer::Tenant;
    let said = &machine.condition.description;
    let reason = match machine.phase {
        phase if is_tenant && phase.is_reclaim() => RELEASED,
        _ => &machine.reason,
    };
    let description = if said.is_empty() || (held && !reason.is_empty()) {
        reason
    } else {
        said
    };
    let is_offered = machine.phase == Phase::Waiting && machine.allocation.is_none();
    let trouble = (is_offered && description.is_empty())
        .then(|| state::query::cable_trouble(tables, machine))
        .flatten();
    let description = trouble.as_deref().unwrap_or(description);
    let issuer = if is_tenant {
        String::new()
    } else {
        machine.condition.issuer.clone()
    };
    v2::MachineCondition {
        state: availability(state),
        description: description.chars().take(DESCRIPTION_MAX).collect(),
        issuer,
    }
}

/// The events of a machine, newest first: published clients take the first one for the latest.
pub(super) fn events(
    tables: &Tables,
    machine: &Machine,
    viewer: Viewer,
) -> v2::MachineRecentProvisioningEvents {
    let Some(log) = tables.get::<EventLog>(&machine.id) else {
        // Published clients dereference this message without a check.
        return v2::MachineRecentProvisioningEvents {
            last_error_event: Some(v2::MachineProvisioningEvent::default()),
            ..Default::default()
        };
    };
    use v2::MachineProvisioningEventState as State;
    let trouble = match (log.failed_reclaim, log.crash_loop) {
        (true, _) => State::FailedReclaim,
        (false, true) => State::Crashloop,
        (false, false) => State::Unspecified,
    };
    let shown = shown_events(log, machine, viewer);
    let last_error = log.last_error_event.as_ref();
    let last_error = last_error.filter(|error| viewer == Viewer::Admin || shown.contains(error));
    v2::MachineRecentProvisioningEvents {
        events: shown
            .iter()
            .rev()
            .map(|entry| event(entry, viewer))
            .collect(),
        last_event_time: time(log.last_event_time),
        last_error_event: Some(
            last_error
                .map(|entry| event(entry, viewer))
                .unwrap_or_default(),
        ),
        state: trouble.into(),
    }
}

/// The events that a viewer may see, oldest first.
fn shown_events<'a>(log: &'a EventLog, machine: &Machine, viewer: Viewer) -> &'a [state::Event] {
    match (viewer, &machine.allocation) {
        (Viewer::Admin, _) => &log.events,
        (Viewer::Tenant, Some(allocation)) => log.events_since(allocation),
        (Viewer::Tenant, None) => &[],
    }
}

fn event(event: &state::Event, viewer: Viewer) -> v2::MachineProvisioningEvent {
    let is_release = viewer == Viewer::Tenant && event.kind == EventKind::MachineReclaim;
    v2::MachineProvisioningEvent {
        time: time(event.time),
        event: event_kind(event.kind),
        message: if is_release {
            RELEASED.to_owned()
        } else {
            event.message.clone()
        },
    }
}
