//! Node allocations: those of a project, and all of them for administrators.

use control_convert::node_allocation::{as_id, from_wish, node_allocation as shown};
use control_convert::{lock, parse, parse_opt};
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{
    self as state, DeleteNodeAllocation, MachinePool, NodeAllocation, StateError,
    UpdateNodeAllocation,
};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::node_allocation_service_server::NodeAllocationService;
use proto_public::metalmesh::admin::v1::operator_node_allocation_service_server::OperatorNodeAllocationService;
use proto_types::ProjectId;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl NodeAllocationService for Services {
    async fn create(
        &self,
        request: Request<mesh::NodeAllocationServiceCreateRequest>,
    ) -> ApiResult<mesh::NodeAllocationServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = from_wish(Some(parse("project", &request.project)?), request.wish)?;
        let made = self.node_allocation_reply(&caller, op).await?;
        ok(mesh::NodeAllocationServiceCreateResponse {
            node_allocation: Some(made),
        })
    }

    async fn update(
        &self,
        request: Request<mesh::NodeAllocationServiceUpdateRequest>,
    ) -> ApiResult<mesh::NodeAllocationServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = UpdateNodeAllocation {
            id: parse("id", &request.id)?,
            project: Some(parse("project", &request.project)?),
            lock: lock(request.update_meta)?,
            name: request.name,
            extra: request
                .extra
                .map(|extra| extra.fields.into_iter().collect()),
        };
        let changed = self.node_allocation_reply(&caller, op).await?;
        ok(mesh::NodeAllocationServiceUpdateResponse {
            node_allocation: Some(changed),
        })
    }

    async fn remove(
        &self,
        request: Request<mesh::NodeAllocationServiceRemoveRequest>,
    ) -> ApiResult<mesh::NodeAllocationServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = DeleteNodeAllocation {
            id: parse("id", &request.id)?,
            project: Some(parse("project", &request.project)?),
        };
        let gone = self.node_allocation_reply(&caller, op).await?;
        ok(mesh::NodeAllocationServiceRemoveResponse {
            node_allocation: Some(gone),
        })
    }

    async fn get(
        &self,
        request: Request<mesh::NodeAllocationServiceGetRequest>,
    ) -> ApiResult<mesh::NodeAllocationServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let wanted = &request.allocation;
        let found = self.gate.read(&caller, |tables| {
            let found = match as_id(wanted) {
                Some(id) => tables.get::<NodeAllocation>(&id),
                None => {
                    let pool = MachinePool::Of(project);
                    state::query::named_allocation(tables, pool, wanted)
                }
            };
            let own = found.filter(|found| found.owner == Some(project));
            own.map(|own| shown(own))
                .ok_or_else(|| StateError::not_found("node-allocation", wanted))
        });
        ok(mesh::NodeAllocationServiceGetResponse {
            node_allocation: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<mesh::NodeAllocationServiceListRequest>,
    ) -> ApiResult<mesh::NodeAllocationServiceListResponse> {
        let caller = Caller::of(&request)?;
        let project: ProjectId = parse("project", &request.get_ref().project)?;
        let found = self.gate.read(&caller, |tables| {
            let own = state::query::pool_allocations(tables, MachinePool::Of(project));
            Ok(own.map(|own| shown(own)).collect::<EncodedItems>())
        });
        listing_encoded(found.await?)
    }
}

#[tonic::async_trait]
impl OperatorNodeAllocationService for Services {
    async fn create(
        &self,
        request: Request<mesh::OperatorNodeAllocationServiceCreateRequest>,
    ) -> ApiResult<mesh::OperatorNodeAllocationServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let owner = parse_opt("owner", request.owner.as_ref())?;
        let op = from_wish(owner, request.wish)?;
        let made = self.node_allocation_reply(&caller, op).await?;
        ok(mesh::OperatorNodeAllocationServiceCreateResponse {
            node_allocation: Some(made),
        })
    }

    async fn remove(
        &self,
        request: Request<mesh::OperatorNodeAllocationServiceRemoveRequest>,
    ) -> ApiResult<mesh::OperatorNodeAllocationServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let op = DeleteNodeAllocation {
            id: parse("id", &request.get_ref().id)?,
            project: None,
        };
        let gone = self.node_allocation_reply(&caller, op).await?;
        ok(mesh::OperatorNodeAllocationServiceRemoveResponse {
            node_allocation: Some(gone),
        })
    }

    async fn list(
        &self,
        request: Request<mesh::OperatorNodeAllocationServiceListRequest>,
    ) -> ApiResult<mesh::OperatorNodeAllocationServiceListResponse> {
        let caller = Caller::of(&request)?;
        let found = self.gate.read(&caller, |tables| {
            let all = tables.all::<NodeAllocation>();
            Ok(all.map(|held| shown(held)).collect::<EncodedItems>())
        });
        listing_encoded(found.await?)
    }
}

impl Services {
    async fn node_allocation_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<mesh::NodeAllocation, Status> {
        let reply = self.gate.propose(caller, op).await?;
        let held = reply.node_allocation().map_err(of_state)?;
        Ok(shown(&held))
    }
}
