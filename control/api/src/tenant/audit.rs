//! Audit records of a tenant, for its owner.

use control_convert::parse;
use control_front::listing::listing;
use control_gate::Caller;
use proto_public::api::v2::audit_service_server::AuditService;
use proto_public::api::v2::{
    AuditServiceGetRequest, AuditServiceGetResponse, AuditServiceListRequest,
    AuditServiceListResponse,
};
use proto_types::TenantId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

use crate::resource::audit::{TraceRow, find, list};

#[tonic::async_trait]
impl AuditService for Services {
    async fn get(
        &self,
        request: Request<AuditServiceGetRequest>,
    ) -> ApiResult<AuditServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let tenant: TenantId = parse("login", &request.login)?;
        let phase = request.phase;
        let found = self.gate.read(&caller, |tables| {
            find(tables, &request.uuid, phase, Some(&tenant))
        });
        ok(AuditServiceGetResponse {
            trace: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<AuditServiceListRequest>,
    ) -> ApiResult<AuditServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let tenant: TenantId = parse("login", &request.login)?;
        let found = self.gate.read(&caller, |tables| {
            Ok(list(tables, request.query.as_ref(), Some(&tenant)))
        });
        listing(found.await?, TraceRow::trace)
    }
}
