//! Machines of a project.

mod allocate;
mod vpn;

use control_convert::machine::{bmc_details, machine, machines};
use control_convert::machine_history::Viewer;
use control_convert::machine_query::matches;
use control_convert::ssh_key::from_keys;
use control_convert::{labels_update, lock, parse, unless_empty};
use control_front::listing::listing_encoded;
use control_gate::Caller;
use control_state::{self as state, UpdateMachine};
use proto_public::api::v2::machine_service_server::MachineService;
use proto_public::api::v2::{
    MachineServiceBmcCommandRequest, MachineServiceBmcCommandResponse, MachineServiceCreateRequest,
    MachineServiceCreateResponse, MachineServiceDeleteRequest, MachineServiceDeleteResponse,
    MachineServiceGetBmcRequest, MachineServiceGetBmcResponse, MachineServiceGetRequest,
    MachineServiceGetResponse, MachineServiceListRequest, MachineServiceListResponse,
    MachineServiceUpdateRequest, MachineServiceUpdateResponse,
};
use proto_types::ProjectId;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

use crate::resource::machine::own;

#[tonic::async_trait]
impl MachineService for Services {
    async fn get(
        &self,
        request: Request<MachineServiceGetRequest>,
    ) -> ApiResult<MachineServiceGetResponse> {
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
    ) -> ApiResult<MachineServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let op = allocate::command(&caller, &request)?;
        self.check_named_machine(&caller, &op).await?;
        let made = self.allocate(&caller, op).await?;
        ok(MachineServiceCreateResponse {
            machine: Some(self.machine_now(&made, Viewer::Tenant).await?),
        })
    }

    async fn update(
        &self,
        request: Request<MachineServiceUpdateRequest>,
    ) -> ApiResult<MachineServiceUpdateResponse> {
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
        self.check_firewall_keys(&caller, &op).await?;
        let changed = self.machine_reply(&caller, op).await?;
        ok(MachineServiceUpdateResponse {
            machine: Some(self.machine_now(&changed, Viewer::Tenant).await?),
        })
    }

    async fn list(
        &self,
        request: Request<MachineServiceListRequest>,
    ) -> ApiResult<MachineServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let listed = self.gate.read(&caller, |tables| {
            let own = state::query::project_machines(tables, project)
                .filter(|machine| machine.is_held_by(project))
                .filter(|machine| matches(tables, machine, request.query.as_ref()));
            Ok(machines(tables, own, Viewer::Tenant))
        });
        listing_encoded(listed.await?)
    }

    async fn delete(
        &self,
        request: Request<MachineServiceDeleteRequest>,
    ) -> ApiResult<MachineServiceDeleteResponse> {
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
    ) -> ApiResult<MachineServiceBmcCommandResponse> {
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
    ) -> ApiResult<MachineServiceGetBmcResponse> {
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

impl Services {
    /// Refuses a project's keys for a firewall, as at its allocation.
    ///
    /// # Errors
    /// `permission_denied`, unless the caller is an admin editor.
    async fn check_firewall_keys(&self, caller: &Caller, op: &UpdateMachine) -> Result<(), Status> {
        if op.ssh_public_keys.is_none() || caller.is_admin_editor() {
            return Ok(());
        }
        let is_firewall = self.gate.read_latest(|tables| {
            let own = own(tables, op.id, Some(op.project))?;
            Ok(state::query::firewall_allocation(tables, own.id).is_some())
        });
        match is_firewall.await? {
            true => Err(allocate::firewall_access_refused("ssh_public_keys")),
            false => Ok(()),
        }
    }
}
