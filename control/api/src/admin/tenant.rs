//! Tenants, kept by administrators.

use control_convert::{from_labels, parse, tenancy};
use control_front::listing::listing_in;
use control_gate::Caller;
use control_state::{self as state, CreateTenant};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{self as api};
use proto_types::TenantId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

/// Largest page of a list of tenants, and the default. A larger count is lowered to it.
const PAGE_MAX: u64 = 1000;

#[tonic::async_trait]
impl admin::tenant_service_server::TenantService for Services {
    /// A tenant whose name is its login and whose user is its owner.
    async fn create(
        &self,
        request: Request<admin::TenantServiceCreateRequest>,
    ) -> ApiResult<admin::TenantServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let login: TenantId = parse("name", &request.name)?;
        let op = CreateTenant {
            login: login.clone(),
            name: request.name,
            email: request.email.unwrap_or_default(),
            description: request.description.unwrap_or_default(),
            avatar_url: request.avatar_url.unwrap_or_default(),
            labels: from_labels(request.labels),
            owner: Some(login),
        };
        let tenant = self.tenant_reply(&caller, op).await?;
        ok(admin::TenantServiceCreateResponse {
            tenant: Some(tenancy::tenant(&tenant)),
        })
    }

    async fn list(
        &self,
        request: Request<admin::TenantServiceListRequest>,
    ) -> ApiResult<admin::TenantServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let paging = query.as_ref().and_then(|query| query.paging);
        let all = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Tenant>()
                .filter(|tenant| tenancy::tenant_matches(tenant, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        let (tenants, next_page) = page(all.await?, paging);
        let answer = admin::TenantServiceListResponse {
            tenants: Vec::new(),
            next_page,
        };
        listing_in(answer, tenants, tenancy::tenant)
    }

    async fn add_member(
        &self,
        request: Request<admin::TenantServiceAddMemberRequest>,
    ) -> ApiResult<admin::TenantServiceAddMemberResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (login, member) = (request.tenant.clone(), request.member.clone());
        let member = self
            .set_member(&caller, &login, &member, request.role, true)
            .await?;
        ok(admin::TenantServiceAddMemberResponse {
            tenant_member: Some(member),
        })
    }

    async fn remove_member(
        &self,
        request: Request<admin::TenantServiceRemoveMemberRequest>,
    ) -> ApiResult<admin::TenantServiceRemoveMemberResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let login: TenantId = parse("tenant", &request.tenant)?;
        let id: TenantId = parse("member", &request.member)?;
        let was = self.drop_member(&caller, login, id).await?;
        ok(admin::TenantServiceRemoveMemberResponse { tenant_member: was })
    }
}

/// One page, counted from 0, and the number of the next. `None` means that it is the last.
fn page<T>(all: Vec<T>, paging: Option<api::Paging>) -> (Vec<T>, Option<u64>) {
    let Some(paging) = paging else {
        return (all, None);
    };
    let count = paging.count.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
    let page = paging.page.unwrap_or(0);
    let skip = usize::try_from(page.saturating_mul(count)).unwrap_or(usize::MAX);
    let take = usize::try_from(count).unwrap_or(usize::MAX);
    let more = all.len() > skip.saturating_add(take);
    (
        all.into_iter().skip(skip).take(take).collect(),
        more.then_some(page + 1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        let tenants: Vec<u32> = (0..5).collect();
        let logins = |page: Vec<u32>| page.iter().map(ToString::to_string).collect::<String>();
        for (at, expected, next) in [
            (0, "01", Some(1)),
            (1, "23", Some(2)),
            (2, "4", None),
            (9, "", None),
        ] {
            let paging = api::Paging {
                page: Some(at),
                count: Some(2),
            };
            let (found, more) = page(tenants.clone(), Some(paging));
            assert_eq!(
                (logins(found).as_str(), more),
                (expected, next),
                "page {at}"
            );
        }
        assert_eq!(page(tenants, None).1, None);
    }
}
