//! Quotas: how much tenants and projects may have.

use control_convert::quota::{from_amounts, quota as shown};
use control_convert::{parse, required};
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{self as state, QuotaSubject, RemoveQuota, SetQuota, StateError, Tables};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::quota_service_remove_request::Subject as RemoveSubject;
use proto_public::metalmesh::admin::v1::quota_service_server::QuotaService;
use proto_public::metalmesh::admin::v1::{Quota, quota};
use proto_types::{ProjectId, TenantId};
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl QuotaService for Services {
    async fn set(
        &self,
        request: Request<mesh::QuotaServiceSetRequest>,
    ) -> ApiResult<mesh::QuotaServiceSetResponse> {
        let caller = Caller::of(&request)?;
        let wanted = required("quota", request.into_inner().quota)?;
        let subject = match required("quota.subject", wanted.subject)? {
            quota::Subject::Tenant(login) => tenant(&login)?,
            quota::Subject::Project(id) => project(&id)?,
        };
        let op = SetQuota {
            subject,
            limits: from_amounts(wanted.limits.unwrap_or_default())?,
        };
        let reply = self.gate.propose(&caller, op).await?;
        let set = reply.quota().map_err(of_state)?;
        let shown = self.gate.read(&caller, |tables| Ok(shown(tables, &set)));
        ok(mesh::QuotaServiceSetResponse {
            quota: Some(shown.await?),
        })
    }

    async fn remove(
        &self,
        request: Request<mesh::QuotaServiceRemoveRequest>,
    ) -> ApiResult<mesh::QuotaServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let subject = match required("subject", request.into_inner().subject)? {
            RemoveSubject::Tenant(login) => tenant(&login)?,
            RemoveSubject::Project(id) => project(&id)?,
        };
        let reply = self.gate.propose(&caller, RemoveQuota { subject }).await?;
        let gone = reply.quota().map_err(of_state)?;
        let shown = self.gate.read(&caller, |tables| Ok(shown(tables, &gone)));
        ok(mesh::QuotaServiceRemoveResponse {
            quota: Some(shown.await?),
        })
    }

    async fn list(
        &self,
        request: Request<mesh::QuotaServiceListRequest>,
    ) -> ApiResult<mesh::QuotaServiceListResponse> {
        let caller = Caller::of(&request)?;
        let quotas = self.gate.read(&caller, |tables| {
            let all = tables.all::<state::Quota>();
            let shown = all.map(|quota| shown(tables, quota));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(quotas.await?)
    }

    async fn tenant(
        &self,
        request: Request<mesh::QuotaServiceTenantRequest>,
    ) -> ApiResult<mesh::QuotaServiceTenantResponse> {
        let caller = Caller::of(&request)?;
        let subject = tenant(&request.get_ref().login)?;
        let found = self.gate.read(&caller, |tables| Ok(find(tables, &subject)));
        ok(mesh::QuotaServiceTenantResponse {
            quota: found.await?,
        })
    }

    async fn project(
        &self,
        request: Request<mesh::QuotaServiceProjectRequest>,
    ) -> ApiResult<mesh::QuotaServiceProjectResponse> {
        let caller = Caller::of(&request)?;
        let id: ProjectId = parse("project", &request.get_ref().project)?;
        let found = self.gate.read(&caller, |tables| {
            let project = tables.require::<state::Project>(&id)?;
            let tenant = QuotaSubject::Tenant(project.tenant.clone());
            Ok::<_, StateError>(mesh::QuotaServiceProjectResponse {
                quota: find(tables, &QuotaSubject::Project(id)),
                tenant: find(tables, &tenant),
            })
        });
        ok(found.await?)
    }
}

fn tenant(login: &str) -> Result<QuotaSubject, Status> {
    parse::<TenantId>("tenant", login).map(QuotaSubject::Tenant)
}

fn project(id: &str) -> Result<QuotaSubject, Status> {
    parse::<ProjectId>("project", id).map(QuotaSubject::Project)
}

fn find(tables: &Tables, subject: &QuotaSubject) -> Option<Quota> {
    let found = tables.get::<state::Quota>(subject);
    found.map(|quota| shown(tables, quota))
}
