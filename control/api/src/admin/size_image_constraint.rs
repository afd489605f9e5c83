//! Size-image constraints: which versions of images the machines of a size can run.

use std::sync::Arc;

use control_convert::reservation::{
    from_image_constraints, image_constraint, image_constraint_matches,
};
use control_convert::{lock, new_meta, parse, unless_empty};
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{
    self as state, CreateSizeImageConstraint, DeleteSizeImageConstraint, UpdateSizeImageConstraint,
};
use proto_public::admin::v2 as admin;
use proto_types::SizeId;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl admin::size_image_constraint_service_server::SizeImageConstraintService for Services {
    async fn create(
        &self,
        request: Request<admin::SizeImageConstraintServiceCreateRequest>,
    ) -> ApiResult<admin::SizeImageConstraintServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = CreateSizeImageConstraint(state::SizeImageConstraint {
            size: parse("size", &request.size)?,
            meta: new_meta(request.meta),
            name: request.name,
            description: request.description,
            image_constraints: from_image_constraints(request.image_constraints),
        });
        let made = self.image_constraint_reply(&caller, op).await?;
        ok(admin::SizeImageConstraintServiceCreateResponse {
            size_image_constraint: Some(image_constraint(&made)),
        })
    }

    async fn update(
        &self,
        request: Request<admin::SizeImageConstraintServiceUpdateRequest>,
    ) -> ApiResult<admin::SizeImageConstraintServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = UpdateSizeImageConstraint {
            size: parse("size", &request.size)?,
            lock: lock(request.update_meta)?,
            name: request.name,
            description: request.description,
            image_constraints: unless_empty(from_image_constraints(request.image_constraints)),
        };
        let changed = self.image_constraint_reply(&caller, op).await?;
        ok(admin::SizeImageConstraintServiceUpdateResponse {
            size_image_constraint: Some(image_constraint(&changed)),
        })
    }

    async fn delete(
        &self,
        request: Request<admin::SizeImageConstraintServiceDeleteRequest>,
    ) -> ApiResult<admin::SizeImageConstraintServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let op = DeleteSizeImageConstraint(parse("size", &request.get_ref().size)?);
        let gone = self.image_constraint_reply(&caller, op).await?;
        ok(admin::SizeImageConstraintServiceDeleteResponse {
            size_image_constraint: Some(image_constraint(&gone)),
        })
    }

    async fn get(
        &self,
        request: Request<admin::SizeImageConstraintServiceGetRequest>,
    ) -> ApiResult<admin::SizeImageConstraintServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let size: SizeId = parse("size", &request.get_ref().size)?;
        let found = self.gate.read(&caller, |tables| {
            let found = tables.require::<state::SizeImageConstraint>(&size)?;
            Ok(image_constraint(found))
        });
        ok(admin::SizeImageConstraintServiceGetResponse {
            size_image_constraint: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<admin::SizeImageConstraintServiceListRequest>,
    ) -> ApiResult<admin::SizeImageConstraintServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let found = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::SizeImageConstraint>()
                .filter(|constraint| image_constraint_matches(constraint, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(found.await?, image_constraint)
    }
}

impl Services {
    async fn image_constraint_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<state::SizeImageConstraint>, Status> {
        let reply = self.gate.propose(caller, op).await?;
        reply.size_image_constraint().map_err(of_state)
    }
}
