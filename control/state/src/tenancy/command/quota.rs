//! Commands about quotas.

use serde::{Deserialize, Serialize};

use crate::tenancy::entity::{Limits, QuotaSubject};

/// See [`Op::SetQuota`](crate::Op::SetQuota).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetQuota {
    /// The tenant or project that the quota bounds.
    pub subject: QuotaSubject,
    /// All limits. They replace those on record.
    pub limits: Limits,
}

/// See [`Op::RemoveQuota`](crate::Op::RemoveQuota).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveQuota {
    /// The tenant or project whose quota is removed.
    pub subject: QuotaSubject,
}
