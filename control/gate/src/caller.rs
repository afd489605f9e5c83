//! The caller of a request: the gate puts it into the extensions, the handler takes it out.

use std::net::IpAddr;
use std::sync::Arc;

use control_authz::{Permit, Principal, PrincipalKind};
use control_state::{ErrorCode, Token};
use proto_public::api::v2::AdminRole;
use proto_types::{PartitionId, TenantId};
use tonic::{Request, Status};

use crate::freshness::Freshness;
use crate::refusal::refused;

/// The admitted caller of a method.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Proof that the call is allowed; needed for each write.
    pub permit: Permit,
    /// User, token and rights of the caller.
    pub principal: Arc<Principal>,
    /// Login; empty without a token.
    pub user: String,
    /// The partition that the token's label binds it to. `None` means any partition.
    pub partition: Option<String>,
    /// Source address of the call.
    pub address: Option<IpAddr>,
    /// The request without secrets, for policies that judge it again. `Some` for streams and calls
    /// that may take minutes.
    pub request: Option<Arc<serde_json::Value>>,
    /// Lets the first read of the call reuse the read index of the gate.
    pub freshness: Freshness,
}

/// Label of a token that binds an agent to the partition of that id.
pub const PARTITION_LABEL: &str = "metalmesh.dev/partition";

/// See [`Caller::manages`].
pub(crate) fn manages(user: &str, partition: Option<&String>, token: &Token) -> bool {
    let bound = token.meta.labels.get(PARTITION_LABEL);
    token.user == user && (partition.is_none() || bound == partition)
}

impl Caller {
    /// The caller of this request.
    ///
    /// # Errors
    /// `internal` if the request bypassed the gate, which is a bug.
    pub fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        request
            .extensions()
            .get::<Self>()
            .cloned()
            .ok_or_else(|| refused(ErrorCode::Internal, "the call came past the gate"))
    }

    /// `true` if the token has an admin role.
    pub fn is_admin(&self) -> bool {
        self.principal.kind == PrincipalKind::Api
            && matches!(
                self.principal.rights.admin_role,
                Some(AdminRole::Editor | AdminRole::Viewer)
            )
    }

    /// `true` if the token has the admin editor role.
    pub fn is_admin_editor(&self) -> bool {
        self.principal.kind == PrincipalKind::Api
            && self.principal.rights.admin_role == Some(AdminRole::Editor)
    }

    /// `true` if the caller may list, change and revoke this token of its user. A token that is
    /// bound to a partition manages only tokens with the same binding: an agent's stolen token must
    /// not act on the tokens of other partitions.
    pub fn manages(&self, token: &Token) -> bool {
        manages(&self.user, self.partition.as_ref(), token)
    }

    /// Refuses a token that is bound to another partition.
    ///
    /// # Errors
    /// `permission_denied`, whether or not the partition exists: the answer must not tell.
    pub fn speaks_for(&self, partition: &PartitionId) -> Result<(), Status> {
        if self.reaches(Some(partition)) {
            return Ok(());
        }
        let message = format!("the token does not speak for partition \"{partition}\"");
        Err(refused(ErrorCode::PermissionDenied, message))
    }

    /// `true` if the token may see objects in this partition.
    pub fn reaches(&self, partition: Option<&PartitionId>) -> bool {
        let bound = self.partition.as_deref();
        bound.is_none_or(|bound| partition.is_some_and(|partition| partition.as_str() == bound))
    }

    /// The caller's own tenant.
    ///
    /// # Errors
    /// `unauthenticated` without a token.
    pub fn login(&self) -> Result<TenantId, Status> {
        self.user
            .parse()
            .map_err(|_| refused(ErrorCode::Unauthenticated, "a token is needed"))
    }
}
