//! Machines: allocated by projects, kept by administrators.

mod allocate;
mod issues;
mod vpn;

use std::sync::Arc;
use std::time::Duration;

use control_convert::enums::{from_availability, from_bmc_command};
use control_convert::machine::{bmc_details, deletion_task, machine, machines};
use control_convert::machine_history::Viewer;
use control_convert::machine_query::{fitting, matches};
use control_convert::ssh_key::from_keys;
use control_convert::{labels_update, lock, parse, required, unless_empty};
use control_front::listing::{listing, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::{of_state, refused};
use control_state::{
    self as state, DeleteMachine, ErrorCode, FreeMachine, Machine, OrderBmc, SetMachineState,
    UpdateMachine,
};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::machine_service_server::MachineService;
use proto_public::api::v2::{
    self as api, MachineServiceBmcCommandRequest, MachineServiceBmcCommandResponse,
    MachineServiceCreateRequest, MachineServiceCreateResponse, MachineServiceDeleteRequest,
    MachineServiceDeleteResponse, MachineServiceGetBmcRequest, MachineServiceGetBmcResponse,
    MachineServiceGetRequest, MachineServiceGetResponse, MachineServiceListRequest,
    MachineServiceListResponse, MachineServiceUpdateRequest, MachineServiceUpdateResponse,
};
use proto_types::{AllocationId, MachineId, ProjectId};
use tokio::time::Instant;
use tonic::{Request, Status};

use super::{Answer, Services, ok};

/// How long a delete waits for the machine to leave its project; it goes on without the caller.
const DELETE_WAIT: Duration = Duration::from_secs(10);

#[tonic::async_trait]
impl MachineService for Services {
    async fn get(
        &self,
        request: Request<MachineServiceGetRequest>,
    ) -> Answer<MachineServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (id, project) = (
            parse("uuid", &request.uuid)?,
            parse("project", &request.project)?,
        );
        let found = self.gate.read(&caller, |tables| {
            Ok(machine(
                tables,
                own(tables, id, Some(project))?,
                Viewer::Tenant,
            ))
        });
        ok(MachineServiceGetResponse {
            machine: Some(found.await?),
        })
    }

    async fn create(
        &self,
        request: Request<MachineServiceCreateRequest>,
    ) -> Answer<MachineServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let op = allocate::command(&caller, &request)?;
        let made = self.allocate(&caller, op).await?;
        ok(MachineServiceCreateResponse {
            machine: Some(self.machine_now(&made, Viewer::Tenant).await?),
        })
    }

    async fn update(
        &self,
        request: Request<MachineServiceUpdateRequest>,
    ) -> Answer<MachineServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = UpdateMachine {
            id: parse("uuid", &request.uuid)?,
            lock: lock(request.update_meta)?,
            project: parse("project", &request.project)?,
            description: request.description,
            labels: labels_update(request.labels),
            ssh_public_keys: unless_empty(from_keys(request.ssh_public_keys)?),
        };
        let changed = self.machine_reply(&caller, op).await?;
        ok(MachineServiceUpdateResponse {
            machine: Some(self.machine_now(&changed, Viewer::Tenant).await?),
        })
    }

    async fn list(
        &self,
        request: Request<MachineServiceListRequest>,
    ) -> Answer<MachineServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let listed = self.gate.read(&caller, |tables| {
            let own = state::query::project_machines(tables, project)
                .filter(|it| matches(tables, it, request.query.as_ref()));
            Ok(machines(tables, own, Viewer::Tenant))
        });
        listing_encoded(listed.await?)
    }

    async fn delete(
        &self,
        request: Request<MachineServiceDeleteRequest>,
    ) -> Answer<MachineServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (id, project) = (
            parse("uuid", &request.uuid)?,
            parse("project", &request.project)?,
        );
        let machine = self.free(&caller, id, Some(project)).await?;
        ok(MachineServiceDeleteResponse {
            machine: Some(machine),
        })
    }

    async fn bmc_command(
        &self,
        request: Request<MachineServiceBmcCommandRequest>,
    ) -> Answer<MachineServiceBmcCommandResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (id, project) = (
            parse("uuid", &request.uuid)?,
            parse("project", &request.project)?,
        );
        let task_id = self
            .order(&caller, id, Some(project), request.command)
            .await?;
        ok(MachineServiceBmcCommandResponse { task_id })
    }

    /// The BMC of a project's own machine, without its credentials, which control does not have.
    async fn get_bmc(
        &self,
        request: Request<MachineServiceGetBmcRequest>,
    ) -> Answer<MachineServiceGetBmcResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (id, project) = (
            parse("uuid", &request.uuid)?,
            parse("project", &request.project)?,
        );
        let found = self.gate.read(&caller, |tables| {
            Ok(bmc_details(own(tables, id, Some(project))?))
        });
        ok(MachineServiceGetBmcResponse {
            bmc_details: Some(found.await?),
        })
    }
}

#[tonic::async_trait]
impl admin::machine_service_server::MachineService for Services {
    async fn get(
        &self,
        request: Request<admin::MachineServiceGetRequest>,
    ) -> Answer<admin::MachineServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: MachineId = parse("uuid", &request.get_ref().uuid)?;
        let found = self.gate.read(&caller, |tables| {
            Ok(machine(tables, own(tables, id, None)?, Viewer::Admin))
        });
        ok(admin::MachineServiceGetResponse {
            machine: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<admin::MachineServiceListRequest>,
    ) -> Answer<admin::MachineServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let listed = self.gate.read(&caller, |tables| {
            let fitting = fitting(tables, query.as_ref()).into_iter();
            Ok(machines(tables, fitting, Viewer::Admin))
        });
        listing_encoded(listed.await?)
    }

    /// Frees an allocated machine; forgets one that nobody has. Refused while it gives signs of
    /// life: no administrator takes a living machine from its tenant.
    async fn delete(
        &self,
        request: Request<admin::MachineServiceDeleteRequest>,
    ) -> Answer<admin::MachineServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let id: MachineId = parse("uuid", &request.get_ref().uuid)?;
        let is_allocated = self
            .gate
            .read(&caller, |tables| {
                Ok(own(tables, id, None)?.allocation.is_some())
            })
            .await?;
        let gone = if is_allocated {
            self.free(&caller, id, None).await?
        } else {
            let gone = self.machine_reply(&caller, DeleteMachine { id }).await?;
            let read = |tables: &state::Tables| Ok(machine(tables, &gone, Viewer::Admin));
            self.gate.read(&caller, read).await?
        };
        ok(admin::MachineServiceDeleteResponse {
            machine: Some(gone),
        })
    }

    async fn bmc_command(
        &self,
        request: Request<admin::MachineServiceBmcCommandRequest>,
    ) -> Answer<admin::MachineServiceBmcCommandResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id = parse("uuid", &request.uuid)?;
        let task_id = self.order(&caller, id, None, request.command).await?;
        ok(admin::MachineServiceBmcCommandResponse { task_id })
    }

    async fn get_bmc(
        &self,
        request: Request<admin::MachineServiceGetBmcRequest>,
    ) -> Answer<admin::MachineServiceGetBmcResponse> {
        let caller = Caller::of(&request)?;
        let id: MachineId = parse("uuid", &request.get_ref().uuid)?;
        let found = self
            .gate
            .read(&caller, |tables| Ok(bmc_details(own(tables, id, None)?)));
        ok(admin::MachineServiceGetBmcResponse {
            bmc_details: Some(found.await?),
        })
    }

    async fn list_bmc(
        &self,
        request: Request<admin::MachineServiceListBmcRequest>,
    ) -> Answer<admin::MachineServiceListBmcResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let found = self.gate.read(&caller, |tables| {
            let fitting = fitting(tables, query.as_ref()).into_iter();
            Ok(fitting.cloned().collect())
        });
        listing(found.await?, bmc_details)
    }

    async fn console_password(
        &self,
        request: Request<admin::MachineServiceConsolePasswordRequest>,
    ) -> Answer<admin::MachineServiceConsolePasswordResponse> {
        let caller = Caller::of(&request)?;
        let id: MachineId = parse("uuid", &request.get_ref().uuid)?;
        let password = self.gate.read(&caller, |tables| {
            let found = own(tables, id, None)?;
            let allocation = found.allocation.as_ref();
            let password = allocation.map(|it| it.install.console_password.clone());
            password
                .filter(|password| !password.is_empty())
                .ok_or_else(|| {
                    let message = format!("machine \"{id}\" has no console password");
                    state::StateError::new(ErrorCode::MachineNotAllocated, message)
                })
        });
        ok(admin::MachineServiceConsolePasswordResponse {
            uuid: id.to_string(),
            password: password.await?,
        })
    }

    async fn set_state(
        &self,
        request: Request<admin::MachineServiceSetStateRequest>,
    ) -> Answer<admin::MachineServiceSetStateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = SetMachineState {
            id: parse("uuid", &request.uuid)?,
            state: required("state", from_availability(request.state))?,
            description: request.description,
        };
        let changed = self.machine_reply(&caller, op).await?;
        let machine = Some(self.machine_now(&changed, Viewer::Admin).await?);
        ok(admin::MachineServiceSetStateResponse { machine })
    }

    async fn issues(
        &self,
        request: Request<admin::MachineServiceIssuesRequest>,
    ) -> Answer<admin::MachineServiceIssuesResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query.unwrap_or_default();
        let now = self.gate.now();
        let issues = self
            .gate
            .read(&caller, |tables| Ok(issues::evaluate(tables, &query, now)));
        ok(admin::MachineServiceIssuesResponse {
            issues: issues.await?,
        })
    }
}

/// A machine of a project, or any for administrators. Another project's is not found.
fn own(
    tables: &state::Tables,
    id: MachineId,
    project: Option<ProjectId>,
) -> Result<&Arc<Machine>, state::StateError> {
    let found = tables.require::<Machine>(&id)?;
    let holder = found.allocation.as_ref().map(|it| it.project);
    if project.is_none() || holder == project {
        Ok(found)
    } else {
        Err(state::StateError::not_found("machine", id))
    }
}

impl Services {
    async fn machine_reply(
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

    /// A machine with what belongs to it.
    async fn machine_now(&self, it: &Machine, viewer: Viewer) -> Result<api::Machine, Status> {
        self.gate
            .read_latest(|tables| Ok(machine(tables, it, viewer)))
            .await
    }

    /// Begins the way back and waits a while for the machine to have left its project. What the
    /// caller gets is the machine as it was while it had it, on its way out.
    async fn free(
        &self,
        caller: &Caller,
        id: MachineId,
        project: Option<ProjectId>,
    ) -> Result<api::Machine, Status> {
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
                // Time is up or the node stops: the way back goes on.
                Ok(None) | Err(_) => break,
            }
        }
        Ok(shown)
    }

    fn still_has(&self, id: MachineId, allocation: AllocationId) -> bool {
        let has = self.gate.store.read_local(|tables| {
            let found = tables
                .get::<Machine>(&id)
                .and_then(|it| it.allocation.as_ref());
            found.is_some_and(|it| it.id == allocation)
        });
        has.unwrap_or(false)
    }

    async fn order(
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
