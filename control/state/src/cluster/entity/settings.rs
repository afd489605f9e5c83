//! Settings of the whole cluster: retention of the audit trail, and budgets.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// Retention of the audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditRetention {
    /// Most records that are kept. Beyond it, the callers with the most records lose their oldest
    /// ones first.
    pub records_max: u32,
    /// Most records that are kept while an export destination has not read them: these are kept
    /// beyond `records_max`, up to this number.
    pub unread_max: u32,
    /// Age from which a record is dropped, milliseconds. `None` means that age alone drops nothing.
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

/// Upper limits of the objects of one user, tenant or project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Most tokens of a user, and of all components of a project together.
    pub tokens_per_user: u32,
    /// Most tenants that a user created.
    pub tenants_per_user: u32,
    /// Most projects of a tenant.
    pub projects_per_tenant: u32,
    /// Most open invites of a user.
    pub invites_per_user: u32,
    /// Most addresses of a project without a quota for addresses.
    pub ips_per_project: u32,
    /// Most networks of a project without a quota for networks.
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
    /// Retention of the audit trail.
    #[serde(default)]
    pub audit: AuditRetention,
    /// Budgets of users, tenants and projects.
    #[serde(default)]
    pub budgets: Budgets,
    /// Time of the last change. Zero means never.
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
