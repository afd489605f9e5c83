//! Authenticates the callers of facades, whose methods are not the contract's.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use control_authz::{Permit, Principal};
use control_state::{ErrorCode, Labels, Tables};
use proto_types::Timestamp;
use tonic::Status;

use crate::caller::{Caller, PARTITION_LABEL};
use crate::context::ServiceContext;
use crate::directory::StateDirectory;
use crate::freshness::Freshness;
use crate::principal::principal;
use crate::refusal::{of_store, refused, too_often};
use crate::stored_token::{good_token, share_of};
use crate::token::Claims;
use crate::wall_clock::now_s;

/// Refusal text of the per-token rate limit.
const RATE_LIMITED: &str = "the token makes more calls than it may (api.calls_per_minute)";

/// The bearer of a valid token. It may do nothing yet: the facade's policy decides.
#[derive(Debug, Clone)]
pub struct Bearer {
    /// User, token and rights.
    pub principal: Arc<Principal>,
    /// Labels of the token.
    pub labels: Labels,
    /// Begin of the token's validity.
    pub issued: Timestamp,
    /// End of the token's validity.
    pub expires: Timestamp,
    /// Source address of the call.
    pub address: Option<IpAddr>,
    /// Lets the first read of the call reuse the read that found the token.
    freshness: Freshness,
}

impl Bearer {
    /// The caller of a permitted call, with whom handlers read and propose.
    pub(crate) fn caller(&self, permit: Permit) -> Caller {
        Caller {
            permit,
            principal: Arc::clone(&self.principal),
            user: self.principal.user.to_string(),
            partition: None,
            address: self.address,
            request: None,
            freshness: self.freshness.clone(),
        }
    }

    /// `true` once for each call: as [`Freshness::take`].
    pub(crate) fn is_fresh(&self) -> bool {
        self.freshness.take()
    }
}

impl ServiceContext {
    /// The name of the quota that calls with this token count against. `None` means that the call
    /// counts against its client network: the token is not valid, or this node has not applied it
    /// yet. Reads the local state only.
    pub fn bearer_share(&self, token: &str) -> Option<Arc<str>> {
        let claims = self.issuer.verify(token, now_s()).ok()?;
        let now = self.now();
        let share = |tables: &Tables| {
            let token = good_token(tables, &claims, now)?;
            Some(share_of(tables, &self.provider, token))
        };
        let share = self.store.read_local(share).ok().flatten();
        share.map(Into::into)
    }

    /// The bearer of a token, and what `look` finds in the state of the same revision. Counts the
    /// call against the token's rate limit.
    ///
    /// # Errors
    /// `unauthenticated` for a token that is not valid; `permission_denied` for one that is bound to a
    /// partition, as those of agents are; `resource_exhausted` above the rate limit.
    pub async fn bearer<T>(
        &self,
        token: &str,
        peer: Option<SocketAddr>,
        look: impl FnOnce(&StateDirectory<'_>, &Principal) -> T,
    ) -> Result<(Bearer, T), Status> {
        let claims = self.issuer.verify(token, now_s()).map_err(|error| {
            // The log alone gets the reason: an attacker would learn from it.
            tracing::debug!(error = %error, "a token was refused");
            not_valid()
        })?;
        let address = peer.map(|peer| peer.ip());
        let find = |tables: &Tables| self.bearer_of(tables, &claims, address, look);
        let found = self.store.read(find).await.map_err(of_store)?;
        let (bearer, looked) = found.ok_or_else(not_valid)?;
        if bearer.labels.contains_key(PARTITION_LABEL) {
            let message = "the token is bound to a partition, and is for agents alone";
            return Err(refused(ErrorCode::PermissionDenied, message));
        }
        let taken = self.rates.take(&bearer.principal, address, self.now());
        taken.map_err(|wait_ms| too_often(RATE_LIMITED, wait_ms))?;
        Ok((bearer, looked))
    }

    fn bearer_of<T>(
        &self,
        tables: &Tables,
        claims: &Claims,
        address: Option<IpAddr>,
        look: impl FnOnce(&StateDirectory<'_>, &Principal) -> T,
    ) -> Option<(Bearer, T)> {
        let directory = StateDirectory {
            tables,
            provider: &self.provider,
        };
        let now = self.now();
        let token = good_token(tables, claims, now)?;
        self.uses.note(token, now);
        let who = principal(token, &directory);
        let looked = look(&directory, &who);
        let bearer = Bearer {
            principal: Arc::new(who),
            labels: token.meta.labels.clone(),
            issued: token.issued_at,
            expires: token.expires,
            address,
            freshness: Freshness::of_call(false),
        };
        Some((bearer, looked))
    }
}

fn not_valid() -> Status {
    refused(ErrorCode::Unauthenticated, "the token is not valid")
}
