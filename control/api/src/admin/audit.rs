//! Audit records of every tenant.

use control_front::listing::listing;
use control_gate::Caller;
use proto_public::admin::v2 as admin;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

use crate::resource::audit::{TraceRow, find, list};

#[tonic::async_trait]
impl admin::audit_service_server::AuditService for Services {
    async fn get(
        &self,
        request: Request<admin::AuditServiceGetRequest>,
    ) -> ApiResult<admin::AuditServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let found = self.gate.read(&caller, |tables| {
            find(tables, &request.uuid, request.phase, None)
        });
        ok(admin::AuditServiceGetResponse {
            trace: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<admin::AuditServiceListRequest>,
    ) -> ApiResult<admin::AuditServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let found = self
            .gate
            .read(&caller, |tables| Ok(list(tables, query.as_ref(), None)));
        listing(found.await?, TraceRow::trace)
    }
}
