//! Quotas: how much tenants and projects may have.

use std::collections::{BTreeMap, HashMap};

use control_state::query::counts;
use control_state::{
    self as state, Limits, QuotaSubject, RemoveQuota, SetQuota, StateError, Tables,
};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::quota_service_remove_request::Subject as RemoveSubject;
use proto_public::metalmesh::admin::v1::quota_service_server::QuotaService;
use proto_public::metalmesh::admin::v1::{Amounts, Quota, quota};
use proto_types::{ProjectId, SizeId, TenantId};
use tonic::{Request, Status};

use super::{Answer, Services, ok};
use crate::caller::Caller;
use crate::convert::{parse, required, time};
use crate::refusal::of_state;

#[tonic::async_trait]
impl QuotaService for Services {
    async fn set(
        &self,
        request: Request<mesh::QuotaServiceSetRequest>,
    ) -> Answer<mesh::QuotaServiceSetResponse> {
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
        let reply = self.0.propose(&caller, op).await?;
        let set = reply.quota().map_err(of_state)?;
        let shown = self.0.read(|tables| Ok(shown(tables, &set)));
        ok(mesh::QuotaServiceSetResponse {
            quota: Some(shown.await?),
        })
    }

    async fn remove(
        &self,
        request: Request<mesh::QuotaServiceRemoveRequest>,
    ) -> Answer<mesh::QuotaServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let subject = match required("subject", request.into_inner().subject)? {
            RemoveSubject::Tenant(login) => tenant(&login)?,
            RemoveSubject::Project(id) => project(&id)?,
        };
        let reply = self.0.propose(&caller, RemoveQuota { subject }).await?;
        let gone = reply.quota().map_err(of_state)?;
        let shown = self.0.read(|tables| Ok(shown(tables, &gone)));
        ok(mesh::QuotaServiceRemoveResponse {
            quota: Some(shown.await?),
        })
    }

    async fn list(
        &self,
        _request: Request<mesh::QuotaServiceListRequest>,
    ) -> Answer<mesh::QuotaServiceListResponse> {
        let quotas = self.0.read(|tables| {
            let all = tables.all::<state::Quota>();
            Ok(all.map(|it| shown(tables, it)).collect())
        });
        ok(mesh::QuotaServiceListResponse {
            quotas: quotas.await?,
        })
    }

    async fn tenant(
        &self,
        request: Request<mesh::QuotaServiceTenantRequest>,
    ) -> Answer<mesh::QuotaServiceTenantResponse> {
        let subject = tenant(&request.get_ref().login)?;
        let found = self.0.read(|tables| Ok(find(tables, &subject)));
        ok(mesh::QuotaServiceTenantResponse {
            quota: found.await?,
        })
    }

    async fn project(
        &self,
        request: Request<mesh::QuotaServiceProjectRequest>,
    ) -> Answer<mesh::QuotaServiceProjectResponse> {
        let id: ProjectId = parse("project", &request.get_ref().project)?;
        let found = self.0.read(|tables| {
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
    found.map(|it| shown(tables, it))
}

/// A quota for the wire, with what is used of it.
fn shown(tables: &Tables, quota: &state::Quota) -> Quota {
    let limits = &quota.limits;
    let used = counts(tables, quota);
    let sizes = |of: &BTreeMap<SizeId, u32>| -> HashMap<String, u32> {
        let all = of.iter();
        all.map(|(size, number)| (size.to_string(), *number))
            .collect()
    };
    Quota {
        subject: Some(match &quota.subject {
            QuotaSubject::Tenant(login) => quota::Subject::Tenant(login.to_string()),
            QuotaSubject::Project(id) => quota::Subject::Project(id.to_string()),
        }),
        limits: Some(Amounts {
            machines: limits.machines,
            machines_of_size: sizes(&limits.machines_of_size),
            networks: limits.networks,
            ips: limits.ips,
        }),
        used: Some(Amounts {
            machines: limits.machines.map(|_| used.machines),
            machines_of_size: sizes(&used.machines_of_size),
            networks: limits.networks.map(|_| used.networks),
            ips: limits.ips.map(|_| used.ips),
        }),
        updated_at: time(quota.updated_at),
    }
}

fn from_amounts(amounts: Amounts) -> Result<Limits, Status> {
    let sizes = amounts.machines_of_size.into_iter();
    let sizes = sizes.map(|(size, number)| {
        let size = parse::<SizeId>("limits.machines_of_size", &size)?;
        Ok((size, number))
    });
    Ok(Limits {
        machines: amounts.machines,
        machines_of_size: sizes.collect::<Result<_, Status>>()?,
        networks: amounts.networks,
        ips: amounts.ips,
    })
}
