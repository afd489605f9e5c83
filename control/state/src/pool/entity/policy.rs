//! Deploy policies: which projects a pool, or a host of it, admits.

use std::collections::BTreeSet;

use proto_types::ProjectId;
use serde::{Deserialize, Serialize};

/// Most policies of a pool or host; a request with more is refused.
pub const DEPLOY_POLICIES_MAX: usize = 64;
/// Highest priority that a policy lets claims have; a higher one is refused.
pub const PRIORITY_MAX: u32 = 1_000;

/// A label that an administrator gave to a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequiredLabel {
    /// Its key.
    pub name: String,
    /// Its value. `None` means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A policy admits the projects that meet all of its conditions. A project is admitted if one policy
/// of a pool admits it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct DeployPolicy {
    /// Name for people.
    pub name: String,
    /// `true` admits every project. A policy without any condition is refused otherwise.
    pub allow_all: bool,
    /// Projects. Empty means that the project is no condition.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub projects: BTreeSet<ProjectId>,
    /// Regular expression over the project's id and its alias, which administrators give; it must
    /// match one of the two as a whole. `None` means no condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Labels that administrators gave to the project, all of them. Empty means no condition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<RequiredLabel>,
    /// Highest priority that claims of these projects may have; a claim that asks for more has
    /// this one.
    #[serde(skip_serializing_if = "is_lowest")]
    pub priority_max: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_lowest(priority: &u32) -> bool {
    *priority == 0
}

impl DeployPolicy {
    /// `true` if it has a condition, or admits everybody by its word.
    pub(crate) fn is_explicit(&self) -> bool {
        self.allow_all
            || !self.projects.is_empty()
            || self.pattern.is_some()
            || !self.labels.is_empty()
    }
}
