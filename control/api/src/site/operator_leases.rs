//! Owners and leases of all machines, for administrators.

use control_convert::lease::{from_capability, tenured_machine};
use control_convert::{parse, parse_opt};
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_state::{self as state, EndLease, LeaseEnder, SetMachineCapability, SetMachineOwner};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::operator_lease_service_server::OperatorLeaseService;
use proto_types::MachineId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl OperatorLeaseService for Services {
    async fn set_owner(
        &self,
        request: Request<mesh::OperatorLeaseServiceSetOwnerRequest>,
    ) -> ApiResult<mesh::OperatorLeaseServiceSetOwnerResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = SetMachineOwner {
            machine: parse("machine", &request.machine)?,
            owner: parse_opt("owner", request.owner.as_ref())?,
        };
        let machine = self.tenure_reply(&caller, op, None).await?;
        ok(mesh::OperatorLeaseServiceSetOwnerResponse {
            machine: Some(machine),
        })
    }

    async fn end(
        &self,
        request: Request<mesh::OperatorLeaseServiceEndRequest>,
    ) -> ApiResult<mesh::OperatorLeaseServiceEndResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = EndLease {
            machine: parse("machine", &request.machine)?,
            by: LeaseEnder::Administrator,
            lease: parse_opt("lease", request.lease.as_ref())?,
            reason: request.reason,
        };
        let lease = self.lease_reply(&caller, op).await?;
        ok(mesh::OperatorLeaseServiceEndResponse { lease: Some(lease) })
    }

    async fn set_capability(
        &self,
        request: Request<mesh::OperatorLeaseServiceSetCapabilityRequest>,
    ) -> ApiResult<mesh::OperatorLeaseServiceSetCapabilityResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (resource_class, traits) = from_capability(request.change)?;
        let op = SetMachineCapability {
            machine: parse("machine", &request.machine)?,
            project: None,
            resource_class,
            traits,
        };
        let machine = self.tenure_reply(&caller, op, None).await?;
        ok(mesh::OperatorLeaseServiceSetCapabilityResponse {
            machine: Some(machine),
        })
    }

    async fn get(
        &self,
        request: Request<mesh::OperatorLeaseServiceGetRequest>,
    ) -> ApiResult<mesh::OperatorLeaseServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: MachineId = parse("machine", &request.get_ref().machine)?;
        let found = self.gate.read(&caller, |tables| {
            let machine = tables.require::<state::Machine>(&id)?;
            Ok(tenured_machine(tables, machine, None))
        });
        ok(mesh::OperatorLeaseServiceGetResponse {
            machine: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<mesh::OperatorLeaseServiceListRequest>,
    ) -> ApiResult<mesh::OperatorLeaseServiceListResponse> {
        let caller = Caller::of(&request)?;
        let found = self.gate.read(&caller, |tables| {
            let all = tables.all::<state::Machine>();
            let known = all.filter(|machine| {
                !(machine.tenure.is_default() && machine.capability.is_default())
            });
            let shown = known.map(|machine| tenured_machine(tables, machine, None));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(found.await?)
    }
}
