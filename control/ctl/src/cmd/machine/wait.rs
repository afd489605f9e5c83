//! `--wait`: polls a machine until it reaches its goal, and shows each step on stderr.

use std::time::Duration;

use anyhow::{Result, bail};
use proto_public::admin::v2::{TaskServiceGetRequest, TaskState};
use proto_public::api::v2::{Machine, MachineProvisioningEventType as Event};
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

use crate::app::App;
use crate::show::{event_name, label, last_event, machine_state, newest, reason};

/// Pause between two requests.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The state to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitGoal {
    /// The installed system phoned home.
    Installed,
    /// The machine can be allocated again.
    Waiting,
}

/// `true` if the caller can no longer see the machine.
pub(crate) fn is_gone(error: &anyhow::Error) -> bool {
    let status = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Status>());
    status.is_some_and(|status| status.code() == Code::NotFound)
}

/// Waits until a machine reaches a goal.
///
/// # Errors
/// The machine is tainted, or the limit passed; the error has the last step.
pub(crate) async fn until(
    app: &App,
    uuid: &str,
    goal: WaitGoal,
    limit: Duration,
) -> Result<Machine> {
    let start = Instant::now();
    let mut shown = String::new();
    loop {
        let machine = app.machine(uuid).await?;
        let step = progress(&machine);
        if step != shown {
            noteln!("{:>5}s  {step}", start.elapsed().as_secs());
            shown = step;
        }
        if reached(&machine, goal) {
            return Ok(machine);
        }
        if machine_state(&machine) == "tainted" {
            bail!(
                "the machine is tainted: {}; see: metalmesh machine show {uuid}",
                reason(&machine)
            );
        }
        if start.elapsed() >= limit {
            bail!(
                "not complete after {}s, last step: {shown}; the operation continues, see: \
                 metalmesh machine show {uuid}",
                limit.as_secs()
            );
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Waits until a task ends. It needs no limit, as a task ends at its deadline at the latest.
pub(crate) async fn until_done(app: &App, task: &str) -> Result<()> {
    loop {
        let request = TaskServiceGetRequest {
            task_id: task.to_owned(),
            queue: String::new(),
        };
        let answer = app.client.admin_tasks().get(request).await?.into_inner();
        let info = answer.task.unwrap_or_default();
        match info.state() {
            TaskState::Completed => return Ok(()),
            TaskState::Archived => {
                bail!("the BMC did not carry out the order: {}", info.last_error)
            }
            _ => sleep(POLL_INTERVAL).await,
        }
    }
}

/// The phase of a machine and its newest event, on one line.
pub(crate) fn progress(machine: &Machine) -> String {
    let Some(newest) = newest(machine) else {
        return last_event(machine);
    };
    let phase = label(machine, "metalmesh.dev/phase").unwrap_or("-");
    if newest.message.is_empty() {
        return format!("{phase}: {}", event_name(newest));
    }
    format!("{phase}: {}: {}", event_name(newest), newest.message)
}

fn reached(machine: &Machine, goal: WaitGoal) -> bool {
    let event = newest(machine).map(|newest| newest.event());
    match goal {
        WaitGoal::Installed => machine.allocation.is_some() && event == Some(Event::PhonedHome),
        WaitGoal::Waiting => machine.allocation.is_none() && event == Some(Event::Waiting),
    }
}

#[cfg(test)]
mod tests {
    use proto_public::api::v2::{
        MachineAllocation, MachineProvisioningEvent, MachineRecentProvisioningEvents,
    };

    use super::*;

    fn machine(events: &[(i64, Event)], allocated: bool) -> Machine {
        let event = |(seconds, event): &(i64, Event)| MachineProvisioningEvent {
            time: Some(prost_types::Timestamp {
                seconds: *seconds,
                nanos: 0,
            }),
            event: (*event).into(),
            message: String::new(),
        };
        Machine {
            allocation: allocated.then(MachineAllocation::default),
            recent_provisioning_events: Some(MachineRecentProvisioningEvents {
                events: events.iter().map(event).collect(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn goals() {
        let old = [(2, Event::Installing), (1, Event::PhonedHome)];
        assert!(!reached(&machine(&old, true), WaitGoal::Installed));
        let up = [(3, Event::PhonedHome), (3, Event::BootingNewKernel)];
        assert!(reached(&machine(&up, true), WaitGoal::Installed));
        assert!(!reached(&machine(&up, false), WaitGoal::Waiting));
        assert!(reached(
            &machine(&[(4, Event::Waiting)], false),
            WaitGoal::Waiting
        ));
        assert!(!reached(&machine(&[], false), WaitGoal::Waiting));
    }
}
