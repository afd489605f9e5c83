//! Commands about invites.

use std::fmt;

use proto_types::{Digest, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::blob;
use crate::tenancy::entity::{InvitePlace, InviteTo, Warrant};

/// See [`Op::CreateInvite`](crate::Op::CreateInvite).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateInvite {
    /// SHA-256 of the invite's secret.
    pub id: Digest,
    /// The invite's secret, sealed.
    #[serde(with = "blob")]
    pub sealed_secret: Vec<u8>,
    /// The membership that the invite gives.
    pub to: InviteTo,
    /// See [`Invite::warrant`](crate::Invite::warrant).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warrant: Option<Warrant>,
    /// End of validity, at most seven days away.
    pub expires_at: Timestamp,
}

impl fmt::Debug for CreateInvite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateInvite")
            .field("id", &self.id)
            .field("sealed_secret", &"<redacted>")
            .field("to", &self.to)
            .field("expires_at", &self.expires_at)
            .finish()
    }
}

/// See [`Op::AcceptInvite`](crate::Op::AcceptInvite).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcceptInvite {
    /// SHA-256 of the invite's secret.
    pub id: Digest,
    /// Login of the new member.
    pub member: TenantId,
}

/// See [`Op::DeleteInvite`](crate::Op::DeleteInvite).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteInvite {
    /// SHA-256 of the invite's secret.
    pub id: Digest,
    /// The tenant or project of the invite. An invite into another one is not found.
    pub place: InvitePlace,
}
