//! `--wait`: until a machine is where it should be, showing each step on stderr.

use std::time::Duration;

use anyhow::{Result, bail};
use proto_public::admin::v2::{TaskServiceGetRequest, TaskState};
use proto_public::api::v2::{Machine, MachineProvisioningEventType as Event};
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

use crate::app::App;
use crate::show::{event_name, label, last_event, machine_state, newest, reason};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Where the machine should get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Its system phoned home.
    Installed,
    /// It can be allocated again.
    Waiting,
}

/// Whether the machine left what one may see.
pub(crate) fn is_gone(error: &anyhow::Error) -> bool {
    let status = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Status>());
    status.is_some_and(|status| status.code() == Code::NotFound)
}

/// Waits; an error tells how far it got.
pub(crate) async fn until(app: &App, uuid: &str, goal: Goal, limit: Duration) -> Result<Machine> {
    let start = Instant::now();
    let mut shown = String::new();
    loop {
        let machine = app.machine(uuid).await?;
        let step = step(&machine);
        if step != shown {
            noteln!("{:>5}s  {step}", start.elapsed().as_secs());
            shown = step;
        }
        if reached(&machine, goal) {
            return Ok(machine);
        }
        if machine_state(&machine) == "tainted" {
            bail!(
                "the machine is held: {}; see: metalmesh machine show {uuid}",
                reason(&machine)
            );
        }
        if start.elapsed() >= limit {
            bail!(
                "not done after {}s, last was {shown}; it goes on, see: metalmesh machine show {uuid}",
                limit.as_secs()
            );
        }
        sleep(PAUSE).await;
    }
}

/// Waits for a task: an order ends by itself, at its deadline at the latest.
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
            TaskState::Archived => bail!("the BMC did not do it: {}", info.last_error),
            _ => sleep(PAUSE).await,
        }
    }
}

fn step(machine: &Machine) -> String {
    let Some(newest) = newest(machine) else {
        return last_event(machine);
    };
    let phase = label(machine, "metalmesh.dev/phase").unwrap_or("-");
    if newest.message.is_empty() {
        return format!("{phase}: {}", event_name(newest));
    }
    format!("{phase}: {}: {}", event_name(newest), newest.message)
}

fn reached(machine: &Machine, goal: Goal) -> bool {
    let event = newest(machine).map(|newest| newest.event());
    match goal {
        Goal::Installed => machine.allocation.is_some() && event == Some(Event::PhonedHome),
        Goal::Waiting => machine.allocation.is_none() && event == Some(Event::Waiting),
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
        assert!(!reached(&machine(&old, true), Goal::Installed));
        let up = [(3, Event::PhonedHome), (3, Event::BootingNewKernel)];
        assert!(reached(&machine(&up, true), Goal::Installed));
        assert!(!reached(&machine(&up, false), Goal::Waiting));
        assert!(reached(
            &machine(&[(4, Event::Waiting)], false),
            Goal::Waiting
        ));
        assert!(!reached(&machine(&[], false), Goal::Waiting));
    }
}
