//! Tokens of all users.

use control_convert::token::{token, token_matches};
use control_convert::{parse, required};
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::refused;
use control_state::{self as state, ErrorCode, RevokeToken};
use proto_public::admin::v2 as admin;
use proto_types::TokenId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

use crate::resource::token::wanted;

#[tonic::async_trait]
impl admin::token_service_server::TokenService for Services {
    async fn list(
        &self,
        request: Request<admin::TokenServiceListRequest>,
    ) -> ApiResult<admin::TokenServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let now = self.gate.now();
        let tokens = self.gate.read(&caller, |tables| {
            let valid = tables
                .all::<state::Token>()
                .filter(|token| token.is_valid(now));
            let fitting = valid.filter(|token| token_matches(token, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(tokens.await?, token)
    }

    async fn revoke(
        &self,
        request: Request<admin::TokenServiceRevokeRequest>,
    ) -> ApiResult<admin::TokenServiceRevokeResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: TokenId = parse("uuid", &request.uuid)?;
        self.gate
            .read(&caller, |tables| {
                let found = tables.require::<state::Token>(&id)?;
                let theirs = request.user.is_empty() || found.user == request.user;
                if theirs {
                    Ok(())
                } else {
                    Err(state::StateError::not_found("token", id))
                }
            })
            .await?;
        self.gate.propose(&caller, RevokeToken { id }).await?;
        ok(admin::TokenServiceRevokeResponse {})
    }

    /// A token for any user.
    async fn create(
        &self,
        request: Request<admin::TokenServiceCreateRequest>,
    ) -> ApiResult<admin::TokenServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let user = request.user.unwrap_or_else(|| caller.user.clone());
        if user != caller.user && !caller.is_admin_editor() {
            // The subject "*" of such a token stands for the memberships of the other user.
            let message = "only an admin editor makes tokens of other users";
            return Err(refused(ErrorCode::PermissionDenied, message));
        }
        let inner = required("token_create_request", request.token_create_request)?;
        let mut wanted = wanted(user, inner)?;
        wanted.warrant = self
            .gate
            .grant(&caller, &wanted.user, &wanted.rights)
            .await?;
        let (made, secret) = self.make(&caller, wanted).await?;
        ok(admin::TokenServiceCreateResponse {
            token: Some(token(&made)),
            secret,
        })
    }
}
