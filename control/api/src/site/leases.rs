//! Machines that a project owns or leases.

use control_convert::lease::{
    from_capability, from_extension, from_grant, lease as shown, tenured_machine,
};
use control_convert::{parse, parse_opt};
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{
    self as state, DecideLeaseTransfer, EndLease, LeaseEnder, RequestLeaseTransfer,
    SetMachineCapability, StateError, TransferMachine,
};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::lease_service_server::LeaseService;
use proto_types::{LeaseId, MachineId, ProjectId};
use tonic::{Request, Status};
use uuid::Uuid;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl LeaseService for Services {
    async fn grant(
        &self,
        request: Request<mesh::LeaseServiceGrantRequest>,
    ) -> ApiResult<mesh::LeaseServiceGrantResponse> {
        let caller = Caller::of(&request)?;
        let op = from_grant(LeaseId::new(Uuid::now_v7()), request.into_inner())?;
        let lease = self.lease_reply(&caller, op).await?;
        ok(mesh::LeaseServiceGrantResponse { lease: Some(lease) })
    }

    async fn extend(
        &self,
        request: Request<mesh::LeaseServiceExtendRequest>,
    ) -> ApiResult<mesh::LeaseServiceExtendResponse> {
        let caller = Caller::of(&request)?;
        let op = from_extension(request.get_ref())?;
        let lease = self.lease_reply(&caller, op).await?;
        ok(mesh::LeaseServiceExtendResponse { lease: Some(lease) })
    }

    async fn end(
        &self,
        request: Request<mesh::LeaseServiceEndRequest>,
    ) -> ApiResult<mesh::LeaseServiceEndResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = EndLease {
            machine: parse("machine", &request.machine)?,
            by: LeaseEnder::Project(parse("project", &request.project)?),
            lease: parse_opt("lease", request.lease.as_ref())?,
            reason: request.reason,
        };
        let lease = self.lease_reply(&caller, op).await?;
        ok(mesh::LeaseServiceEndResponse { lease: Some(lease) })
    }

    async fn request_transfer(
        &self,
        request: Request<mesh::LeaseServiceRequestTransferRequest>,
    ) -> ApiResult<mesh::LeaseServiceRequestTransferResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = RequestLeaseTransfer {
            machine: parse("machine", &request.machine)?,
            project: parse("project", &request.project)?,
            lease: parse_opt("lease", request.lease.as_ref())?,
            to: parse_opt("to", request.to.as_ref())?,
        };
        let lease = self.lease_reply(&caller, op).await?;
        ok(mesh::LeaseServiceRequestTransferResponse { lease: Some(lease) })
    }

    async fn decide_transfer(
        &self,
        request: Request<mesh::LeaseServiceDecideTransferRequest>,
    ) -> ApiResult<mesh::LeaseServiceDecideTransferResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = DecideLeaseTransfer {
            machine: parse("machine", &request.machine)?,
            project: parse("project", &request.project)?,
            lease: parse_opt("lease", request.lease.as_ref())?,
            to: parse("to", &request.to)?,
            consent: request.consent,
        };
        let lease = self.lease_reply(&caller, op).await?;
        ok(mesh::LeaseServiceDecideTransferResponse { lease: Some(lease) })
    }

    async fn transfer_machine(
        &self,
        request: Request<mesh::LeaseServiceTransferMachineRequest>,
    ) -> ApiResult<mesh::LeaseServiceTransferMachineResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = TransferMachine {
            machine: parse("machine", &request.machine)?,
            project: parse("project", &request.project)?,
            to: parse("to", &request.to)?,
        };
        // The machine is another project's from now on: the answer does not show it.
        self.gate.propose(&caller, op).await?;
        ok(mesh::LeaseServiceTransferMachineResponse {})
    }

    async fn set_capability(
        &self,
        request: Request<mesh::LeaseServiceSetCapabilityRequest>,
    ) -> ApiResult<mesh::LeaseServiceSetCapabilityResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let (resource_class, traits) = from_capability(request.change)?;
        let op = SetMachineCapability {
            machine: parse("machine", &request.machine)?,
            project: Some(project),
            resource_class,
            traits,
        };
        let machine = self.tenure_reply(&caller, op, Some(project)).await?;
        ok(mesh::LeaseServiceSetCapabilityResponse {
            machine: Some(machine),
        })
    }

    async fn get(
        &self,
        request: Request<mesh::LeaseServiceGetRequest>,
    ) -> ApiResult<mesh::LeaseServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: MachineId = parse("machine", &request.get_ref().machine)?;
        let project: ProjectId = parse("project", &request.get_ref().project)?;
        let found = self.gate.read(&caller, |tables| {
            let machine = tables.require::<state::Machine>(&id)?;
            match machine.tenure.relation(project) {
                Some(_) => Ok(tenured_machine(tables, machine, Some(project))),
                None => Err(StateError::not_found("machine", id)),
            }
        });
        ok(mesh::LeaseServiceGetResponse {
            machine: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<mesh::LeaseServiceListRequest>,
    ) -> ApiResult<mesh::LeaseServiceListResponse> {
        let caller = Caller::of(&request)?;
        let project: ProjectId = parse("project", &request.get_ref().project)?;
        let found = self.gate.read(&caller, |tables| {
            let own = state::query::tenured_machines(tables, project);
            let shown = own.map(|machine| tenured_machine(tables, machine, Some(project)));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(found.await?)
    }
}

impl Services {
    /// Carries out a command about a lease. The answer is the lease.
    pub(super) async fn lease_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<mesh::Lease, Status> {
        let reply = self.gate.propose(caller, op).await?;
        reply.lease().map(|lease| shown(&lease)).map_err(of_state)
    }

    /// Carries out a command about the tenure of a machine. The answer is the machine, for a project or
    /// for an administrator.
    pub(super) async fn tenure_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
        viewer: Option<ProjectId>,
    ) -> Result<mesh::TenuredMachine, Status> {
        let reply = self.gate.propose(caller, op).await?;
        let machine = reply.machine().map_err(of_state)?;
        let shown = |tables: &state::Tables| Ok(tenured_machine(tables, &machine, viewer));
        self.gate.read_latest(shown).await
    }
}
