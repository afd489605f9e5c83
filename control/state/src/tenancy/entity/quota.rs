//! Quotas: limits of the holdings of tenants and projects.

use std::collections::BTreeMap;
use std::fmt;

use proto_types::{ProjectId, SizeId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

/// The tenant or project that a quota bounds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuotaSubject {
    /// All projects of a tenant together.
    Tenant(TenantId),
    /// A project.
    Project(ProjectId),
}

impl fmt::Display for QuotaSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(login) => write!(f, "tenant/{login}"),
            Self::Project(id) => write!(f, "project/{id}"),
        }
    }
}

/// Upper limits of holdings. `None` means no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Most allocated machines.
    pub machines: Option<u32>,
    /// Most allocated machines of a size, by size. Sizes that are missing here have no limit.
    pub machines_of_size: BTreeMap<SizeId, u32>,
    /// Most networks that the project owns.
    pub networks: Option<u32>,
    /// Most addresses, those of machines included.
    pub ips: Option<u32>,
}

/// Limits of the holdings of a tenant or project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// The key: the tenant or project that the quota bounds.
    pub subject: QuotaSubject,
    /// The limits.
    pub limits: Limits,
    /// Time of the last change.
    pub updated_at: Timestamp,
}
