//! Machines: reads and changes that projects and administrators have in common.

use std::sync::Arc;
use std::time::Duration;

use control_convert::enums::from_bmc_command;
use control_convert::machine::{deletion_task, machine};
use control_convert::machine_history::Viewer;
use control_gate::Caller;
use control_gate::refusal::{of_state, refused};
use control_state::{self as state, ErrorCode, FreeMachine, Machine, OrderBmc};
use proto_public::api::v2::{self as api};
use proto_types::{AllocationId, MachineId, ProjectId};
use tokio::time::Instant;
use tonic::Status;

use crate::services::Services;

/// Longest wait of a delete for the machine to leave its project. After it the caller gets its
/// answer, and the release goes on.
const DELETE_WAIT: Duration = Duration::from_secs(10);

/// A machine of a project. `None` means any machine, for administrators.
///
/// # Errors
/// `not_found` for another project's machine, as for one that does not exist.
pub(crate) fn own(
    tables: &state::Tables,
    id: MachineId,
    project: Option<ProjectId>,
) -> Result<&Arc<Machine>, state::StateError> {
    let found = tables.require::<Machine>(&id)?;
    if project.is_none_or(|project| found.is_held_by(project)) {
        Ok(found)
    } else {
        Err(state::StateError::not_found("machine", id))
    }
}

impl Services {
    pub(crate) async fn machine_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<Machine>, Status> {
        self.gate
            .propose(caller, op)
            .await?
            .machine()
            .map_err(of_state)
    }

    /// A machine for the wire, as of the newest state of this node.
    pub(crate) async fn machine_now(
        &self,
        record: &Machine,
        viewer: Viewer,
    ) -> Result<api::Machine, Status> {
        self.gate
            .read_latest(|tables| Ok(machine(tables, record, viewer)))
            .await
    }

    /// Starts the release of a machine and waits up to [`DELETE_WAIT`] until it has left its
    /// project. The answer is the machine as it was at the start of the release: afterwards it is
    /// not the caller's to see.
    pub(crate) async fn free(
        &self,
        caller: &Caller,
        id: MachineId,
        project: Option<ProjectId>,
    ) -> Result<api::Machine, Status> {
        // Before the command: a machine that leaves at once would not be noticed.
        let mut changes = self.gate.store.watch();
        let freed = self
            .machine_reply(caller, FreeMachine { id, project })
            .await?;
        let viewer = project.map_or(Viewer::Admin, |_| Viewer::Tenant);
        let mut shown = self.machine_now(&freed, viewer).await?;
        let Some(allocation) = &freed.allocation else {
            return Ok(shown);
        };
        if let Some(meta) = &mut shown.meta {
            meta.deletion_task_id
                .get_or_insert_with(|| deletion_task(allocation));
        }
        if caller.permit.is_trial() {
            return Ok(shown);
        }
        let until = Instant::now() + DELETE_WAIT;
        while self.still_has(id, allocation.id) {
            match tokio::time::timeout_at(until, changes.next()).await {
                Ok(Some(_)) => {}
                // Time is up or the node stops: the release goes on without the caller.
                Ok(None) | Err(_) => break,
            }
        }
        Ok(shown)
    }

    fn still_has(&self, id: MachineId, allocation: AllocationId) -> bool {
        let has = self.gate.store.read_local(|tables| {
            let found = tables
                .get::<Machine>(&id)
                .and_then(|machine| machine.allocation.as_ref());
            found.is_some_and(|current| current.id == allocation)
        });
        has.unwrap_or(false)
    }

    pub(crate) async fn order(
        &self,
        caller: &Caller,
        machine: MachineId,
        project: Option<ProjectId>,
        command: i32,
    ) -> Result<String, Status> {
        let action = from_bmc_command(command).ok_or_else(|| {
            refused(
                ErrorCode::InvalidField,
                "command is none that may be ordered",
            )
        })?;
        let description = String::new();
        let op = OrderBmc {
            user: None,
            machine,
            project,
            action,
            description,
        };
        let order = self
            .gate
            .propose(caller, op)
            .await?
            .bmc_order()
            .map_err(of_state)?;
        Ok(order.id.to_string())
    }
}
