//! Tenants: owners of projects, and their members.

use control_authz::{TokenRights, tenant_role};
use control_convert::{from_labels, labels_update, lock, parse, required, tenancy};
use control_front::listing::{EncodedItems, listing, listing_encoded};
use control_gate::Caller;
use control_gate::StateDirectory;
use control_gate::refusal::invalid;
use control_state::{
    self as state, CreateTenant, DeleteTenant, InvitePlace, InviteTo, RemoveTenantMember,
    UpdateTenant,
};
use proto_public::api::v2::tenant_service_server::TenantService;
use proto_public::api::v2::{
    self as api, TenantServiceCreateRequest, TenantServiceCreateResponse,
    TenantServiceDeleteRequest, TenantServiceDeleteResponse, TenantServiceGetRequest,
    TenantServiceGetResponse, TenantServiceListRequest, TenantServiceListResponse,
    TenantServiceUpdateRequest, TenantServiceUpdateResponse,
};
use proto_types::TenantId;
use tonic::Request;
use uuid::Uuid;

use super::invite::tenant_invite;
use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl TenantService for Services {
    /// A tenant of the caller's own, of which it becomes the owner.
    async fn create(
        &self,
        request: Request<TenantServiceCreateRequest>,
    ) -> ApiResult<TenantServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = CreateTenant {
            // The login is generated: the contract's request has none, and names are not unique.
            login: parse("login", &Uuid::now_v7().to_string())?,
            name: request.name,
            email: request.email.unwrap_or_default(),
            description: request.description.unwrap_or_default(),
            avatar_url: request.avatar_url.unwrap_or_default(),
            labels: from_labels(request.labels),
            owner: Some(caller.login()?),
        };
        let tenant = self.tenant_reply(&caller, op).await?;
        ok(TenantServiceCreateResponse {
            tenant: Some(tenancy::tenant(&tenant)),
        })
    }

    /// The tenants that the caller belongs to.
    async fn list(
        &self,
        request: Request<TenantServiceListRequest>,
    ) -> ApiResult<TenantServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        if query.as_ref().is_some_and(|query| query.paging.is_some()) {
            return Err(invalid("query.paging", "is for administrators' lists only"));
        }
        let tenants = self.gate.read(&caller, |tables| {
            let directory = StateDirectory {
                tables,
                provider: &self.gate.provider,
            };
            let own = tables.all::<state::Tenant>().filter(|tenant| {
                tenant_role(&directory, &caller.user, tenant.login.as_str()).is_some()
            });
            let fitting = own.filter(|tenant| tenancy::tenant_matches(tenant, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(tenants.await?, tenancy::tenant)
    }

    /// A tenant and its members; guests see no members.
    async fn get(
        &self,
        request: Request<TenantServiceGetRequest>,
    ) -> ApiResult<TenantServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let login: TenantId = parse("login", &request.get_ref().login)?;
        let answer = self.gate.read(&caller, |tables| {
            let tenant = tables.require::<state::Tenant>(&login)?;
            let directory = StateDirectory {
                tables,
                provider: &self.gate.provider,
            };
            let role = tenant_role(&directory, &caller.user, login.as_str());
            let hidden = role == Some(api::TenantRole::Guest) && !caller.is_admin();
            let members = if hidden {
                Vec::new()
            } else {
                tenancy::tenant_members(tables, tenant)
            };
            Ok(TenantServiceGetResponse {
                tenant: Some(tenancy::tenant(tenant)),
                tenant_members: members,
            })
        });
        ok(answer.await?)
    }

    async fn update(
        &self,
        request: Request<TenantServiceUpdateRequest>,
    ) -> ApiResult<TenantServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = UpdateTenant {
            login: parse("login", &request.login)?,
            lock: lock(request.update_meta)?,
            name: request.name,
            email: request.email,
            description: request.description,
            avatar_url: request.avatar_url,
            labels: labels_update(request.labels),
        };
        let tenant = self.tenant_reply(&caller, op).await?;
        ok(TenantServiceUpdateResponse {
            tenant: Some(tenancy::tenant(&tenant)),
        })
    }

    async fn delete(
        &self,
        request: Request<TenantServiceDeleteRequest>,
    ) -> ApiResult<TenantServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let login: TenantId = parse("login", &request.get_ref().login)?;
        if *caller.user == *login.as_str() {
            let there = |tables: &state::Tables| tables.require::<state::Tenant>(&login).map(drop);
            self.gate.read(&caller, there).await?;
            let rule = "is your personal tenant, which lasts as long as you: delete its projects";
            return Err(invalid("login", rule));
        }
        let op = DeleteTenant {
            login,
            personal: caller.is_admin_editor(),
        };
        let tenant = self.tenant_reply(&caller, op).await?;
        ok(TenantServiceDeleteResponse {
            tenant: Some(tenancy::tenant(&tenant)),
        })
    }

    async fn leave(
        &self,
        request: Request<api::TenantServiceLeaveRequest>,
    ) -> ApiResult<api::TenantServiceLeaveResponse> {
        let caller = Caller::of(&request)?;
        let op = RemoveTenantMember {
            login: parse("login", &request.get_ref().login)?,
            member: caller.login()?,
        };
        self.tenant_reply(&caller, op).await?;
        ok(api::TenantServiceLeaveResponse {})
    }

    async fn add_member(
        &self,
        request: Request<api::TenantServiceAddMemberRequest>,
    ) -> ApiResult<api::TenantServiceAddMemberResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (login, member) = (request.login.clone(), request.member.clone());
        // The contract lets editors add members. Nobody grants a role above the own one.
        let rights = TokenRights {
            tenant_roles: [(login.clone(), request.role())].into(),
            ..TokenRights::default()
        };
        self.gate.check_grant(&caller, &rights).await?;
        let member = self
            .set_member(&caller, &login, &member, request.role, true)
            .await?;
        ok(api::TenantServiceAddMemberResponse {
            tenant_member: Some(member),
        })
    }

    async fn update_member(
        &self,
        request: Request<api::TenantServiceUpdateMemberRequest>,
    ) -> ApiResult<api::TenantServiceUpdateMemberResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (login, member) = (request.login.clone(), request.member.clone());
        let member = self
            .set_member(&caller, &login, &member, request.role, false)
            .await?;
        ok(api::TenantServiceUpdateMemberResponse {
            tenant_member: Some(member),
        })
    }

    async fn remove_member(
        &self,
        request: Request<api::TenantServiceRemoveMemberRequest>,
    ) -> ApiResult<api::TenantServiceRemoveMemberResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let login = parse("login", &request.login)?;
        let was = self
            .drop_member(&caller, login, parse("member", &request.member)?)
            .await?;
        ok(api::TenantServiceRemoveMemberResponse { tenant_member: was })
    }

    async fn invite(
        &self,
        request: Request<api::TenantServiceInviteRequest>,
    ) -> ApiResult<api::TenantServiceInviteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let to = InviteTo::Tenant {
            login: parse("login", &request.login)?,
            role: required("role", tenancy::from_tenant_role(request.role))?,
        };
        let made = self.make_invite(&caller, to).await?;
        let shown = self
            .gate
            .read(&caller, |tables| Ok(tenant_invite(tables, &made)));
        ok(api::TenantServiceInviteResponse {
            invite: shown.await?,
        })
    }

    async fn invites_list(
        &self,
        request: Request<api::TenantServiceInvitesListRequest>,
    ) -> ApiResult<api::TenantServiceInvitesListResponse> {
        let caller = Caller::of(&request)?;
        let place = InvitePlace::Tenant(parse("login", &request.get_ref().login)?);
        let invites = self.invites(&caller, &place).await?;
        let shown = self.gate.read(&caller, |tables| {
            let shown = invites
                .iter()
                .filter_map(|invite| tenant_invite(tables, invite));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(shown.await?)
    }

    /// The invite of a secret. Every caller that knows the secret may read it.
    async fn invite_get(
        &self,
        request: Request<api::TenantServiceInviteGetRequest>,
    ) -> ApiResult<api::TenantServiceInviteGetResponse> {
        let caller = Caller::of(&request)?;
        let found = self.invite_of(&caller, &request.get_ref().secret, tenant_invite);
        ok(api::TenantServiceInviteGetResponse {
            invite: Some(found.await?),
        })
    }

    async fn invite_accept(
        &self,
        request: Request<api::TenantServiceInviteAcceptRequest>,
    ) -> ApiResult<api::TenantServiceInviteAcceptResponse> {
        let caller = Caller::of(&request)?;
        let secret = request.into_inner().secret;
        let into = self.invite_of(&caller, &secret, tenant_invite).await?;
        self.accept(&caller, &secret).await?;
        ok(api::TenantServiceInviteAcceptResponse {
            tenant: into.target_tenant,
            tenant_name: into.target_tenant_name,
        })
    }

    async fn invite_delete(
        &self,
        request: Request<api::TenantServiceInviteDeleteRequest>,
    ) -> ApiResult<api::TenantServiceInviteDeleteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let place = InvitePlace::Tenant(parse("login", &request.login)?);
        self.uninvite(&caller, place, &request.secret).await?;
        ok(api::TenantServiceInviteDeleteResponse {})
    }
}
