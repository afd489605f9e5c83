//! Audit records: a tenant's owner sees its own, an administrator all.

use control_state::{AuditEntry, StateError, Tables};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::audit_service_server::AuditService;
use proto_public::api::v2::{
    AuditPhase, AuditQuery, AuditServiceGetRequest, AuditServiceGetResponse,
    AuditServiceListRequest, AuditServiceListResponse, AuditTrace, Meta,
};
use proto_types::TenantId;
use tonic::Request;

use super::{Answer, Services, ok};
use crate::audit::belongs_to;
use crate::convert::enums::audit_phase;
use crate::convert::{from_time, is, is_opt, parse, time};

/// Records of an answer when the query does not say.
const LIMIT_DEFAULT: usize = 100;
/// The most records of an answer.
const LIMIT_MAX: usize = 1000;

#[tonic::async_trait]
impl AuditService for Services {
    async fn get(
        &self,
        request: Request<AuditServiceGetRequest>,
    ) -> Answer<AuditServiceGetResponse> {
        let request = request.into_inner();
        let tenant: TenantId = parse("login", &request.login)?;
        let phase = request.phase;
        let found = self
            .0
            .read(|tables| find(tables, &request.uuid, phase, Some(&tenant)));
        ok(AuditServiceGetResponse {
            trace: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<AuditServiceListRequest>,
    ) -> Answer<AuditServiceListResponse> {
        let request = request.into_inner();
        let tenant: TenantId = parse("login", &request.login)?;
        let found = self
            .0
            .read(|tables| Ok(list(tables, request.query.as_ref(), Some(&tenant))));
        ok(AuditServiceListResponse {
            traces: found.await?,
        })
    }
}

#[tonic::async_trait]
impl admin::audit_service_server::AuditService for Services {
    async fn get(
        &self,
        request: Request<admin::AuditServiceGetRequest>,
    ) -> Answer<admin::AuditServiceGetResponse> {
        let request = request.into_inner();
        let found = self
            .0
            .read(|tables| find(tables, &request.uuid, request.phase, None));
        ok(admin::AuditServiceGetResponse {
            trace: Some(found.await?),
        })
    }

    async fn list(
        &self,
        request: Request<admin::AuditServiceListRequest>,
    ) -> Answer<admin::AuditServiceListResponse> {
        let query = request.into_inner().query;
        let found = self.0.read(|tables| Ok(list(tables, query.as_ref(), None)));
        ok(admin::AuditServiceListResponse {
            traces: found.await?,
        })
    }
}

fn find(
    tables: &Tables,
    id: &str,
    phase: Option<i32>,
    tenant: Option<&TenantId>,
) -> Result<AuditTrace, StateError> {
    let phase = phase.unwrap_or(AuditPhase::Request as i32);
    tables
        .all::<AuditEntry>()
        .rev()
        .filter(|entry| tenant.is_none_or(|tenant| belongs_to(entry, tables, tenant)))
        .find(|entry| entry.id == id && audit_phase(entry.phase) == phase)
        .map(|entry| trace(entry))
        .ok_or_else(|| StateError::not_found("audit record", id))
}

/// The newest that fit, oldest first.
fn list(tables: &Tables, query: Option<&AuditQuery>, tenant: Option<&TenantId>) -> Vec<AuditTrace> {
    let limit = query
        .and_then(|query| query.limit)
        .and_then(|limit| usize::try_from(limit).ok())
        .map_or(LIMIT_DEFAULT, |limit| limit.min(LIMIT_MAX));
    let mut found: Vec<AuditTrace> = tables
        .all::<AuditEntry>()
        .rev()
        .filter(|entry| tenant.is_none_or(|tenant| belongs_to(entry, tables, tenant)))
        .filter(|entry| fits(entry, query))
        .take(limit)
        .map(|entry| trace(entry))
        .collect();
    found.reverse();
    found
}

fn fits(entry: &AuditEntry, query: Option<&AuditQuery>) -> bool {
    let Some(query) = query else { return true };
    is(query.uuid.as_ref(), &entry.id)
        && query
            .from
            .as_ref()
            .is_none_or(|from| entry.time >= from_time(from))
        && query
            .to
            .as_ref()
            .is_none_or(|to| entry.time <= from_time(to))
        && is(query.user.as_ref(), &entry.user)
        && is_opt(query.project.as_ref(), entry.project.as_ref())
        && is(query.method.as_ref(), &entry.method)
        && is(query.source_ip.as_ref(), &entry.source_ip)
        && query
            .result_code
            .is_none_or(|code| entry.result_code == Some(code))
        && query.body.as_ref().is_none_or(|text| {
            entry
                .body
                .as_ref()
                .is_some_and(|body| body.contains(text.as_str()))
        })
        && query
            .phase
            .is_none_or(|phase| phase == audit_phase(entry.phase))
}

pub(crate) fn trace(entry: &AuditEntry) -> AuditTrace {
    AuditTrace {
        uuid: entry.id.clone(),
        timestamp: time(entry.time),
        user: entry.user.clone(),
        tenant: entry.tenant.clone(),
        project: entry.project.clone(),
        method: entry.method.clone(),
        body: entry.body.clone(),
        source_ip: entry.source_ip.clone(),
        result_code: entry.result_code,
        phase: audit_phase(entry.phase),
        meta: Some(Meta {
            created_at: time(entry.time),
            updated_at: time(entry.time),
            ..Default::default()
        }),
    }
}
