//! Commands about quotas.

use serde::{Deserialize, Serialize};

use crate::tenancy::entity::{Limits, QuotaSubject};

/// See [`Op::SetQuota`](crate::Op::SetQuota).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetQuota {
    /// For whom.
    pub subject: QuotaSubject,
    /// All bounds.
    pub limits: Limits,
}

/// See [`Op::RemoveQuota`](crate::Op::RemoveQuota).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveQuota {
    /// Whose.
    pub subject: QuotaSubject,
}
