//! Who calls: put into each request by the gate, taken out by the handler.

use std::net::IpAddr;
use std::sync::Arc;

use control_authz::{Permit, Principal, TokenKind};
use control_state::ErrorCode;
use proto_public::api::v2::AdminRole;
use proto_types::{PartitionId, TenantId};
use tonic::{Request, Status};

use crate::freshness::Freshness;
use crate::refusal::refused;

/// The caller of a method that was allowed to call it.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Proof that the call is allowed; needed for each write.
    pub permit: Permit,
    /// What the token says.
    pub principal: Arc<Principal>,
    /// Login; empty without a token.
    pub user: String,
    /// The partition that the token is bound to, by its label; it speaks for no other.
    pub partition: Option<String>,
    /// Where the call comes from.
    pub address: Option<IpAddr>,
    /// Of a stream, or of a call that may take minutes, the request without its secrets: what
    /// policies look at again.
    pub request: Option<Arc<serde_json::Value>>,
    /// Whether the first read of the call may rely on the gate's.
    pub freshness: Freshness,
}

/// Label of a token that binds an agent to the partition of that id.
pub const PARTITION_LABEL: &str = "metalmesh.dev/partition";

impl Caller {
    /// The caller of this request.
    ///
    /// # Errors
    /// `internal` when the gate was left out, which is a mistake of ours.
    pub fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        request
            .extensions()
            .get::<Self>()
            .cloned()
            .ok_or_else(|| refused(ErrorCode::Internal, "the call came past the gate"))
    }

    /// Whether an admin's token calls.
    pub fn is_admin(&self) -> bool {
        self.principal.kind == TokenKind::Api
            && matches!(
                self.principal.rights.admin_role,
                Some(AdminRole::Editor | AdminRole::Viewer)
            )
    }

    /// Whether an admin's token calls that may change things.
    pub fn is_admin_editor(&self) -> bool {
        self.principal.kind == TokenKind::Api
            && self.principal.rights.admin_role == Some(AdminRole::Editor)
    }

    /// An agent's token may be bound to a partition.
    ///
    /// # Errors
    /// `permission_denied`, the same whether there is such a partition or not.
    pub fn speaks_for(&self, partition: &PartitionId) -> Result<(), Status> {
        if self.reaches(Some(partition)) {
            return Ok(());
        }
        let message = format!("the token does not speak for partition \"{partition}\"");
        Err(refused(ErrorCode::PermissionDenied, message))
    }

    /// Whether what is in this partition is there for the caller's token.
    pub fn reaches(&self, partition: Option<&PartitionId>) -> bool {
        let bound = self.partition.as_deref();
        bound.is_none_or(|bound| partition.is_some_and(|it| it.as_str() == bound))
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
