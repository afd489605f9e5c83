//! Claims of a project.

use std::sync::Arc;

use control_convert::claim::claim as shown;
use control_convert::claim_spec::{from_map, from_reboot_mode, from_spec};
use control_convert::{has_all, parse, parse_opt};
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::{of_state, refused};
use control_state::query::{named_claim, project_claims};
use control_state::{
    Claim, CreateClaim, DeleteClaim, ErrorCode, HoldClaim, Op, RebootClaim, StateError, Tables,
    UpdateClaim,
};
use control_watch::{Scope, WatchQuery, open};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use proto_public::metalmesh::tenant::v1 as tenant;
use proto_public::metalmesh::tenant::v1::claim_service_server::ClaimService;
use proto_types::{ClaimId, ProjectId};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::claim_watch::claim_event;
use crate::services::{ApiResult, Services, ok};

/// The messages of a watch of claims.
type ClaimStream = BoxStream<'static, Result<tenant::ClaimServiceWatchResponse, Status>>;

#[tonic::async_trait]
impl ClaimService for Services {
    async fn create(
        &self,
        request: Request<tenant::ClaimServiceCreateRequest>,
    ) -> ApiResult<tenant::ClaimServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = CreateClaim {
            id: ClaimId::new(Uuid::now_v7()),
            project: parse("project", &request.project)?,
            name: request.name,
            labels: from_map(request.labels),
            spec: from_spec(request.spec, "")?,
            adopt: parse_opt("adopt", request.adopt.as_ref())?,
        };
        let claim = Some(self.claim_reply(&caller, op).await?);
        ok(tenant::ClaimServiceCreateResponse { claim })
    }

    async fn get(
        &self,
        request: Request<tenant::ClaimServiceGetRequest>,
    ) -> ApiResult<tenant::ClaimServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = parse("project", &request.project)?;
        let found = self.gate.read(&caller, |tables| {
            let claim = find(tables, project, &request.claim)?;
            Ok(shown(tables, claim))
        });
        let claim = Some(found.await?);
        ok(tenant::ClaimServiceGetResponse { claim })
    }

    async fn list(
        &self,
        request: Request<tenant::ClaimServiceListRequest>,
    ) -> ApiResult<tenant::ClaimServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: ProjectId = parse("project", &request.project)?;
        let wanted = from_map(request.labels);
        let listed = self.gate.read(&caller, |tables| {
            let own = project_claims(tables, project);
            let own = own.filter(|claim| has_all(&claim.meta.labels, &wanted));
            let shown = own.map(|claim| shown(tables, claim));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(listed.await?)
    }

    async fn update(
        &self,
        request: Request<tenant::ClaimServiceUpdateRequest>,
    ) -> ApiResult<tenant::ClaimServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let claim = self.own_claim(&caller, &request.project, &request.claim);
        let claim = claim.await?;
        let spec = request.spec.map(|spec| {
            // User data is never read back, so that a caller cannot send it back.
            from_spec(Some(spec), &claim.spec.userdata)
        });
        let op = UpdateClaim {
            id: claim.id,
            expected: request.expected_generation,
            project: claim.project,
            epoch: request.expected_epoch,
            spec: spec.transpose()?,
            labels: request.labels.map(|labels| from_map(labels.labels)),
        };
        let claim = Some(self.claim_reply(&caller, op).await?);
        ok(tenant::ClaimServiceUpdateResponse { claim })
    }

    async fn delete(
        &self,
        request: Request<tenant::ClaimServiceDeleteRequest>,
    ) -> ApiResult<tenant::ClaimServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let claim = self.own_claim(&caller, &request.project, &request.claim);
        let claim = claim.await?;
        let expected: Option<ClaimId> = parse_opt("expected_uuid", request.expected_uuid.as_ref())?;
        if expected.is_some_and(|expected| expected != claim.id) {
            let message = format!("claim \"{}\" is another one now: {}", claim.name, claim.id);
            return Err(refused(ErrorCode::Conflict, message));
        }
        let op = DeleteClaim {
            id: claim.id,
            project: claim.project,
            epoch: request.expected_epoch,
        };
        let claim = Some(self.claim_reply(&caller, op).await?);
        ok(tenant::ClaimServiceDeleteResponse { claim })
    }

    async fn reboot(
        &self,
        request: Request<tenant::ClaimServiceRebootRequest>,
    ) -> ApiResult<tenant::ClaimServiceRebootResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let mode = from_reboot_mode(&request.mode)?;
        let claim = self.own_claim(&caller, &request.project, &request.claim);
        let claim = claim.await?;
        let op = RebootClaim {
            id: claim.id,
            project: claim.project,
            epoch: request.expected_epoch,
            request: request.request,
            mode,
        };
        let claim = Some(self.claim_reply(&caller, op).await?);
        ok(tenant::ClaimServiceRebootResponse { claim })
    }

    async fn set_hold(
        &self,
        request: Request<tenant::ClaimServiceSetHoldRequest>,
    ) -> ApiResult<tenant::ClaimServiceSetHoldResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let claim = self.own_claim(&caller, &request.project, &request.claim);
        let claim = claim.await?;
        let op = HoldClaim {
            id: claim.id,
            project: claim.project,
            epoch: request.expected_epoch,
            key: request.key,
            is_held: true,
            reason: request.reason,
        };
        let claim = Some(self.claim_reply(&caller, op).await?);
        ok(tenant::ClaimServiceSetHoldResponse { claim })
    }

    async fn clear_hold(
        &self,
        request: Request<tenant::ClaimServiceClearHoldRequest>,
    ) -> ApiResult<tenant::ClaimServiceClearHoldResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let claim = self.own_claim(&caller, &request.project, &request.claim);
        let claim = claim.await?;
        let op = HoldClaim {
            id: claim.id,
            project: claim.project,
            epoch: request.expected_epoch,
            key: request.key,
            is_held: false,
            reason: String::new(),
        };
        let claim = Some(self.claim_reply(&caller, op).await?);
        ok(tenant::ClaimServiceClearHoldResponse { claim })
    }

    async fn watch(
        &self,
        request: Request<tenant::ClaimServiceWatchRequest>,
    ) -> ApiResult<ClaimStream> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let query = WatchQuery {
            scope: Scope::Project(parse("project", &request.project)?),
            kinds: vec!["claim".to_owned()],
            id: request.uuid,
            from: request.from_revision,
        };
        let stream = open(&self.gate, &self.node.watches, &caller, query);
        let told = stream.await?.map(|event| event.and_then(claim_event));
        Ok(Response::new(told.boxed()))
    }
}

/// A claim of a project by its id or its name. A foreign one looks as if it did not exist.
fn find<'a>(
    tables: &'a Tables,
    project: ProjectId,
    text: &str,
) -> Result<&'a Arc<Claim>, StateError> {
    let by_id = text.parse::<ClaimId>().ok();
    let found = match by_id {
        Some(id) => tables.get::<Claim>(&id),
        None => named_claim(tables, project, text),
    };
    let own = found.filter(|claim| claim.project == project);
    own.ok_or_else(|| StateError::not_found("claim", text))
}

impl Services {
    /// The claim that a change is about.
    async fn own_claim(
        &self,
        caller: &Caller,
        project: &str,
        claim: &str,
    ) -> Result<Arc<Claim>, Status> {
        let project = parse("project", project)?;
        let found = self.gate.read(caller, |tables| {
            find(tables, project, claim).map(Arc::clone)
        });
        found.await
    }

    /// Proposes a change of a claim, and shows the claim as it is then.
    async fn claim_reply(
        &self,
        caller: &Caller,
        op: impl Into<Op>,
    ) -> Result<tenant::Claim, Status> {
        let reply = self.gate.propose(caller, op).await?;
        let claim = reply.claim().map_err(of_state)?;
        let is_trial = caller.permit.is_trial();
        // The command may have taken it further than its reply says; a dry run left it as it was.
        let read = self.gate.read_latest(|tables| {
            let newest = tables.get::<Claim>(&claim.id).filter(|_| !is_trial);
            Ok(shown(tables, newest.unwrap_or(&claim)))
        });
        read.await
    }
}
