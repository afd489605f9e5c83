//! Pools of hosts.

use std::collections::BTreeSet;

use proto_types::{MachineId, PoolId};
use serde::{Deserialize, Serialize};

use crate::machine::entity::WipeLevel;
use crate::meta::Meta;
use crate::pool::entity::{DeployPolicy, MetadataRules};

/// Most pools of a cluster; a further one is refused.
pub const POOLS_MAX: usize = 1_000;
/// Most published keys of a pool; a request with more is refused.
pub const PUBLISHED_MAX: usize = 64;
/// Longest reservation of a host for its last project, milliseconds: 30 days. A longer one is
/// refused.
pub const REUSE_MAX_MS: u64 = 30 * 24 * 3_600_000;

/// The rule for bound hosts whose project the policies do not admit any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RevokeRule {
    /// The claim keeps its host, and says that the policy does not admit it.
    #[default]
    Keep,
    /// The claim loses its host after a time.
    Evict {
        /// Time from the change of the policies, milliseconds.
        grace_ms: u64,
    },
}

/// A pool of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPool {
    /// The key.
    pub id: PoolId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Policies. Empty admits nobody.
    #[serde(default)]
    pub policies: Vec<DeployPolicy>,
    /// Keys of the hosts' labels that projects see and select by. A key that ends with `*` stands
    /// for all keys that begin so. Others are to a project as if the hosts did not have them.
    #[serde(default)]
    pub published: BTreeSet<String>,
    /// Strength of the wipe that a host needs between two claims.
    #[serde(default)]
    pub floor: WipeLevel,
    /// Longest reservation of a released host for its last project, milliseconds. 0 means none.
    #[serde(default)]
    pub reuse_max_ms: u64,
    /// Weakest wipe of a host that is kept for its last project. `None` means the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_floor: Option<WipeLevel>,
    /// Labels and annotations of the hosts that claims repeat.
    #[serde(default, skip_serializing_if = "MetadataRules::is_empty")]
    pub metadata: MetadataRules,
    /// The rule for projects that are not admitted any more.
    #[serde(default)]
    pub on_revoke: RevokeRule,
    /// Since the policies changed, bound hosts from this one on were not held against them. `None`
    /// means that all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked_from: Option<MachineId>,
}

impl HostPool {
    /// The strength of the wipe of a host that is kept for its project, by the wish of the claim that
    /// had it. `None` means that the floor counts.
    pub fn lowered(&self, wish: Option<WipeLevel>) -> Option<WipeLevel> {
        let lowest = self.reuse_floor.unwrap_or(self.floor);
        let level = wish.map(|wish| wish.max(lowest));
        level.filter(|level| *level < self.floor)
    }

    /// `true` if projects see the labels of this key.
    pub fn publishes(&self, key: &str) -> bool {
        let is_named = self.published.contains(key);
        is_named
            || self.published.iter().any(|named| {
                let prefix = named.strip_suffix('*');
                prefix.is_some_and(|prefix| key.starts_with(prefix))
            })
    }
}
