//! Settings of the whole cluster: how long the audit trail is kept, and how much one user may have.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// How long records of the audit trail are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditRetention {
    /// Records that are kept. When there are more, the callers that have the most lose their
    /// oldest ones first.
    pub records_max: u32,
    /// Records that a place outside has not read are kept beyond `records_max`, up to so many.
    pub unread_max: u32,
    /// Older records go, milliseconds; `None` means that age alone drops nothing.
    pub age_max_ms: Option<u64>,
}

impl Default for AuditRetention {
    fn default() -> Self {
        Self {
            records_max: 10_000,
            unread_max: 50_000,
            age_max_ms: None,
        }
    }
}

/// How much one user, tenant or project may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Tokens of a user; of a project's components together.
    pub tokens_per_user: u32,
    /// Tenants that a user made.
    pub tenants_per_user: u32,
    /// Projects of a tenant.
    pub projects_per_tenant: u32,
    /// Open invites of a user.
    pub invites_per_user: u32,
    /// Addresses of a project that no quota bounds.
    pub ips_per_project: u32,
    /// Networks of a project that no quota bounds.
    pub networks_per_project: u32,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            tokens_per_user: 200,
            tenants_per_user: 20,
            projects_per_tenant: 200,
            invites_per_user: 100,
            ips_per_project: 20_000,
            networks_per_project: 1_000,
        }
    }
}

/// The settings of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The key: [`Settings::CLUSTER`].
    pub name: String,
    /// How long the audit trail is kept.
    #[serde(default)]
    pub audit: AuditRetention,
    /// How much one user may have.
    #[serde(default)]
    pub budgets: Budgets,
    /// When they were last changed; zero when nobody did.
    pub updated_at: Timestamp,
}

impl Settings {
    /// Name of the one that there is.
    pub const CLUSTER: &'static str = "cluster";
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: Self::CLUSTER.to_owned(),
            audit: AuditRetention::default(),
            budgets: Budgets::default(),
            updated_at: Timestamp::ZERO,
        }
    }
}
