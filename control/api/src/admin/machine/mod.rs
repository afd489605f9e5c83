//! Machines, kept by administrators.

mod issues;

use control_convert::enums::from_availability;
use control_convert::machine::{bmc_details, machine, machines};
use control_convert::machine_history::Viewer;
use control_convert::machine_query::fitting;
use control_convert::{parse, required};
use control_front::listing::{listing, listing_encoded};
use control_gate::Caller;
use control_state::{self as state, DeleteMachine, ErrorCode, SetMachineState};
use proto_public::admin::v2 as admin;
use proto_types::MachineId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

use crate::resource::machine::own;

#[tonic::async_trait]
impl admin::machine_service_server::MachineService for Services {
    async fn get(
        &self,
        request: Request<admin::MachineServiceGetRequest>,
    ) -> ApiResult<admin::MachineServiceGetResponse> {
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
    ) -> ApiResult<admin::MachineServiceListResponse> {
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
    ) -> ApiResult<admin::MachineServiceDeleteResponse> {
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
    ) -> ApiResult<admin::MachineServiceBmcCommandResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id = parse("uuid", &request.uuid)?;
        let task_id = self.order(&caller, id, None, request.command).await?;
        ok(admin::MachineServiceBmcCommandResponse { task_id })
    }

    async fn get_bmc(
        &self,
        request: Request<admin::MachineServiceGetBmcRequest>,
    ) -> ApiResult<admin::MachineServiceGetBmcResponse> {
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
    ) -> ApiResult<admin::MachineServiceListBmcResponse> {
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
    ) -> ApiResult<admin::MachineServiceConsolePasswordResponse> {
        let caller = Caller::of(&request)?;
        let id: MachineId = parse("uuid", &request.get_ref().uuid)?;
        let password = self.gate.read(&caller, |tables| {
            let found = own(tables, id, None)?;
            let allocation = found.allocation.as_ref();
            let password = allocation.map(|allocation| allocation.install.console_password.clone());
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
    ) -> ApiResult<admin::MachineServiceSetStateResponse> {
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
    ) -> ApiResult<admin::MachineServiceIssuesResponse> {
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
