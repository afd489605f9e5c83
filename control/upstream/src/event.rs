//! Events of machines that others saw: the published switch agent hears machines phone home.

use control_convert::enums::from_event_kind;
use control_convert::{from_time, parse, required};
use control_gate::Caller;
use control_gate::refusal::invalid;
use control_state::life::{event_is_heartbeat, restored};
use control_state::{self as state, ErrorCode, EventKind, MachineEvent, PhoneHome};
use proto_public::api::v2::MachineProvisioningEvent;
use proto_public::infra::v2 as infra;
use proto_public::infra::v2::event_service_server::EventService;
use proto_types::{MachineId, ProjectId};
use tonic::{Request, Status};

use crate::{RpcResult, Upstream, ok};

/// Events in one call.
const EVENTS_MAX: usize = 10_000;

#[tonic::async_trait]
impl EventService for Upstream {
    /// Takes what it can; the machines whose events it could not take are in the answer.
    async fn send(
        &self,
        request: Request<infra::EventServiceSendRequest>,
    ) -> RpcResult<infra::EventServiceSendResponse> {
        let caller = Caller::of(&request)?;
        let events = request.into_inner().events;
        if events.len() > EVENTS_MAX {
            return Err(invalid("events", format!("must be at most {EVENTS_MAX}")));
        }
        let (mut taken, mut failed) = (0, Vec::new());
        for (machine, event) in events {
            match self.take_event(&caller, &machine, event).await {
                Ok(()) => taken += 1,
                Err(error) => {
                    tracing::debug!(machine, error = %error, "an event was not taken");
                    failed.push(machine);
                }
            }
        }
        failed.sort();
        ok(infra::EventServiceSendResponse {
            events: taken,
            failed,
        })
    }
}

/// Refuses, before it counts as a sign of life, that nobody's machine phones home, and that one
/// does whose tenant is not known for certain since a restore.
fn check_may_phone_home(
    tables: &state::Tables,
    id: MachineId,
    project: Option<ProjectId>,
) -> Result<(), state::StateError> {
    if restored(tables).is_some() {
        let what = format!("nobody knows whose machine \"{id}\" is since the cluster was restored");
        return Err(state::StateError::new(ErrorCode::NotReconciled, what));
    }
    if project.is_none() {
        let what = format!("machine \"{id}\" is nobody's and cannot phone home");
        return Err(state::StateError::new(ErrorCode::WrongPhase, what));
    }
    Ok(())
}

impl Upstream {
    /// Writes an event of a machine; what says nothing new is not written.
    pub(crate) async fn take_event(
        &self,
        caller: &Caller,
        machine: &str,
        event: MachineProvisioningEvent,
    ) -> Result<(), Status> {
        let id: MachineId = parse("uuid", machine)?;
        let kind = required("event", from_event_kind(event.event))?;
        let now = self.gate.now();
        let time = event.time.as_ref().map_or(now, from_time);
        let (is_heartbeat, project) = self
            .gate
            .read(caller, |tables| {
                let found = tables.get::<state::Machine>(&id);
                let found = found
                    .filter(|machine| caller.reaches(machine.partition.as_ref()))
                    .ok_or_else(|| state::StateError::not_found("machine", id))?;
                let project = found
                    .allocation
                    .as_ref()
                    .map(|allocation| allocation.project);
                if kind == EventKind::PhonedHome {
                    check_may_phone_home(tables, id, project)?;
                }
                Ok((event_is_heartbeat(tables, id, kind), project))
            })
            .await?;
        self.hears_machine(caller, id).await?;
        if is_heartbeat {
            return Ok(());
        }
        let message = event.message;
        match (kind, project) {
            // Only an installed system phones home, and it is its project's.
            (EventKind::PhonedHome, Some(project)) => {
                let op = PhoneHome {
                    id,
                    project,
                    message,
                    time,
                };
                self.gate.propose(caller, op).await.map(drop)
            }
            _ => {
                let op = MachineEvent {
                    id,
                    kind,
                    message,
                    time,
                };
                self.gate.propose(caller, op).await.map(drop)
            }
        }
    }
}
