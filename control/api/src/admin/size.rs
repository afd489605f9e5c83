//! Sizes, kept by administrators.

use std::sync::Arc;

use control_convert::catalog::{self, from_constraints, from_size};
use control_convert::{labels_update, lock, parse, required, unless_empty};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{self as state, CreateSize, DeleteSize, UpdateSize};
use proto_public::admin::v2 as admin;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl admin::size_service_server::SizeService for Services {
    async fn create(
        &self,
        request: Request<admin::SizeServiceCreateRequest>,
    ) -> ApiResult<admin::SizeServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let size = from_size(required("size", request.into_inner().size)?)?;
        let made = self.size_reply(&caller, CreateSize(size)).await?;
        ok(admin::SizeServiceCreateResponse {
            size: Some(catalog::size(&made)),
        })
    }

    async fn update(
        &self,
        request: Request<admin::SizeServiceUpdateRequest>,
    ) -> ApiResult<admin::SizeServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = UpdateSize {
            id: parse("id", &request.id)?,
            lock: lock(request.update_meta)?,
            name: request.name,
            description: request.description,
            constraints: unless_empty(from_constraints(request.constraints)?),
            labels: labels_update(request.labels),
        };
        let changed = self.size_reply(&caller, op).await?;
        ok(admin::SizeServiceUpdateResponse {
            size: Some(catalog::size(&changed)),
        })
    }

    async fn delete(
        &self,
        request: Request<admin::SizeServiceDeleteRequest>,
    ) -> ApiResult<admin::SizeServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let op = DeleteSize(parse("id", &request.get_ref().id)?);
        let gone = self.size_reply(&caller, op).await?;
        ok(admin::SizeServiceDeleteResponse {
            size: Some(catalog::size(&gone)),
        })
    }
}

impl Services {
    async fn size_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<state::Size>, Status> {
        self.gate
            .propose(caller, op)
            .await?
            .size()
            .map_err(of_state)
    }
}
