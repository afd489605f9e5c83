//! Tokens of the caller: made, listed, revoked, never shown again.

use std::sync::Arc;

use control_convert::token::{read_rights, token, token_matches};
use control_convert::{labels_update, lock, parse, unless_empty};
use control_front::listing::listing;
use control_gate::principal::WantedRights;
use control_gate::refusal::of_state;
use control_gate::{Caller, PARTITION_LABEL, WantedToken, merged};
use control_state::{self as state, LabelsUpdate, Lock, RevokeToken, UpdateToken};
use proto_public::api::v2::token_service_server::TokenService;
use proto_public::api::v2::{
    AdminRole, InfraRole, TokenServiceCreateRequest, TokenServiceCreateResponse,
    TokenServiceGetRequest, TokenServiceGetResponse, TokenServiceListRequest,
    TokenServiceListResponse, TokenServiceRefreshRequest, TokenServiceRefreshResponse,
    TokenServiceRevokeRequest, TokenServiceRevokeResponse, TokenServiceUpdateRequest,
    TokenServiceUpdateResponse,
};
use proto_types::TokenId;
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

use crate::resource::token::wanted;

#[tonic::async_trait]
impl TokenService for Services {
    async fn get(
        &self,
        request: Request<TokenServiceGetRequest>,
    ) -> ApiResult<TokenServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let found = self.own_token(&caller, &request.get_ref().uuid).await?;
        ok(TokenServiceGetResponse {
            token: Some(token(&found)),
        })
    }

    async fn create(
        &self,
        request: Request<TokenServiceCreateRequest>,
    ) -> ApiResult<TokenServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let mut wanted = wanted(caller.user.clone(), request.into_inner())?;
        wanted.warrant = self
            .gate
            .grant(&caller, &caller.user, &wanted.rights)
            .await?;
        let (made, secret) = self.make(&caller, wanted).await?;
        ok(TokenServiceCreateResponse {
            token: Some(token(&made)),
            secret,
        })
    }

    async fn update(
        &self,
        request: Request<TokenServiceUpdateRequest>,
    ) -> ApiResult<TokenServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let found = self.own_token(&caller, &request.uuid).await?;
        let mut op = update(found.id, request)?;
        if let (Some(partition), Some(labels)) = (&caller.partition, &mut op.labels) {
            keep_bound(labels, partition);
        }
        let changed = |new: &UpdateToken| WantedRights {
            permissions: new.permissions.clone().unwrap_or_default(),
            project_roles: new.project_roles.clone().unwrap_or_default(),
            tenant_roles: new.tenant_roles.clone().unwrap_or_default(),
            machine_roles: new.machine_roles.clone().unwrap_or_default(),
            admin_role: new.admin_role,
            infra_role: new.infra_role,
        };
        let changed = changed(&op);
        let warrant = self.gate.grant(&caller, &caller.user, &changed).await?;
        if warrant.is_some() || changed.rights().are_over_platform() {
            op.warrant = merged(&found, warrant);
        }
        let reply = self
            .gate
            .propose(&caller, op)
            .await?
            .token()
            .map_err(of_state)?;
        ok(TokenServiceUpdateResponse {
            token: Some(token(&reply)),
        })
    }

    async fn list(
        &self,
        request: Request<TokenServiceListRequest>,
    ) -> ApiResult<TokenServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let now = self.gate.now();
        let tokens = self.gate.read(&caller, |tables| {
            let own = tables
                .all::<state::Token>()
                .filter(|token| caller.manages(token) && token.is_valid(now));
            let fitting = own.filter(|token| token_matches(token, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(tokens.await?, token)
    }

    async fn revoke(
        &self,
        request: Request<TokenServiceRevokeRequest>,
    ) -> ApiResult<TokenServiceRevokeResponse> {
        let caller = Caller::of(&request)?;
        let found = self.own_token(&caller, &request.get_ref().uuid).await?;
        self.gate
            .propose(&caller, RevokeToken { id: found.id })
            .await?;
        ok(TokenServiceRevokeResponse {})
    }

    /// Makes a token with the rights and the life of the one in use, which stays valid.
    async fn refresh(
        &self,
        request: Request<TokenServiceRefreshRequest>,
    ) -> ApiResult<TokenServiceRefreshResponse> {
        let caller = Caller::of(&request)?;
        let old = self.own_token(&caller, &caller.principal.token).await?;
        let rights = WantedRights::of(&old);
        // Rights that the user has lost meanwhile are refused, not renewed.
        let warrant = self.gate.grant(&caller, &old.user, &rights).await?;
        let wanted = WantedToken {
            user: old.user.clone(),
            description: old.description.clone(),
            labels: old.meta.labels.clone(),
            life_ms: old.expires.since_ms(old.issued_at),
            rights,
            warrant,
        };
        let (made, secret) = self.make(&caller, wanted).await?;
        ok(TokenServiceRefreshResponse {
            token: Some(token(&made)),
            secret,
        })
    }
}

/// Keeps the partition in a token's labels: a token that is bound to a partition can loosen neither
/// itself nor other tokens of its user.
fn keep_bound(labels: &mut LabelsUpdate, partition: &str) {
    let label = PARTITION_LABEL.to_owned();
    match labels {
        LabelsUpdate::Replace(labels) => drop(labels.insert(label, partition.to_owned())),
        LabelsUpdate::Patch { update, remove } => {
            remove.retain(|key| *key != label);
            update.insert(label, partition.to_owned());
        }
    }
}

fn update(id: TokenId, request: TokenServiceUpdateRequest) -> Result<UpdateToken, Status> {
    let rights = read_rights(
        &request.permissions,
        &request.project_roles,
        &request.tenant_roles,
        &request.machine_roles,
        request.admin_role,
        request.infra_role,
    )?;
    let labels: Option<LabelsUpdate> = labels_update(request.labels);
    Ok(UpdateToken {
        id,
        // The contract does not ask for a lock here.
        lock: request
            .update_meta
            .map_or(Ok(Lock::Server), |meta| lock(Some(meta)))?,
        description: request.description,
        labels,
        permissions: unless_empty(rights.permissions),
        project_roles: Some(rights.project_roles).filter(|roles| !roles.is_empty()),
        tenant_roles: Some(rights.tenant_roles).filter(|roles| !roles.is_empty()),
        admin_role: rights.admin_role,
        infra_role: rights.infra_role,
        machine_roles: Some(rights.machine_roles).filter(|roles| !roles.is_empty()),
        drop_admin_role: request.admin_role == Some(AdminRole::Unspecified.into()),
        drop_infra_role: request.infra_role == Some(InfraRole::Unspecified.into()),
        warrant: None,
    })
}

impl Services {
    /// A valid token that the caller manages.
    async fn own_token(&self, caller: &Caller, id: &str) -> Result<Arc<state::Token>, Status> {
        let id: TokenId = parse("uuid", id)?;
        let now = self.gate.now();
        self.gate
            .read(caller, |tables| {
                let found = tables.get::<state::Token>(&id).cloned();
                found
                    .filter(|token| caller.manages(token) && token.is_valid(now))
                    .ok_or_else(|| state::StateError::not_found("token", id))
            })
            .await
    }
}
