//! Quotas: how much a tenant or project may have.

use std::collections::BTreeMap;
use std::fmt;

use proto_types::{ProjectId, SizeId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

/// Whom a quota is for.
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
    /// Allocated machines.
    pub machines: Option<u32>,
    /// Allocated machines of a size.
    pub machines_of_size: BTreeMap<SizeId, u32>,
    /// Networks of its own.
    pub networks: Option<u32>,
    /// Addresses, those of machines included.
    pub ips: Option<u32>,
}

/// How much a tenant or project may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// The key.
    pub subject: QuotaSubject,
    /// The bounds.
    pub limits: Limits,
    /// Since when.
    pub updated_at: Timestamp,
}
