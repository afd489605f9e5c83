//! The projects whose agents speak for or against a release. What a firewall reports is its project's word:
//! no project alone stops a rollout, or lets its next wave begin.

use std::collections::BTreeSet;

use proto_types::ProjectId;

use crate::rollout::decision::{AgentStanding, JudgedAgent};
use crate::rollout::entity::Rollout;

/// Projects that must have proven a release before the next wave begins, as long as there are so many.
const PROVEN_BY: usize = 2;

/// The projects of a rollout's agents. Agents of the site have none: their word counts alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProjectVotes {
    /// Those with agents.
    all: BTreeSet<ProjectId>,
    /// Those with agents that failed.
    failed: BTreeSet<ProjectId>,
    /// Those with agents that run the release and are healthy, without the failed ones.
    proven: BTreeSet<ProjectId>,
    /// Those with agents that were told.
    told: BTreeSet<ProjectId>,
}

impl ProjectVotes {
    /// The projects of these agents.
    pub(super) fn of(rollout: &Rollout, agents: &[JudgedAgent]) -> Self {
        let projects = |counts: &dyn Fn(&JudgedAgent) -> bool| -> BTreeSet<ProjectId> {
            let counted = agents.iter().filter(|judged| counts(judged));
            counted.filter_map(|judged| judged.project).collect()
        };
        let is_told = |judged: &JudgedAgent| rollout.told.contains(&judged.agent);
        let failed = projects(&|judged| rollout.failed.contains_key(&judged.agent));
        let mut proven =
            projects(&|judged| is_told(judged) && judged.standing == AgentStanding::Settled);
        proven.retain(|project| !failed.contains(project));
        Self {
            all: projects(&|_| true),
            told: projects(&is_told),
            failed,
            proven,
        }
    }

    /// `true` if the failures are those of one project among several: they stop nothing.
    pub(super) fn is_one_against_others(&self) -> bool {
        self.failed.len() == 1 && self.all.len() > 1
    }

    /// `true` if enough projects have proven the release: two, or all that have not failed.
    pub(super) fn have_proven(&self) -> bool {
        let willing = self.all.len().saturating_sub(self.failed.len());
        self.proven.len() >= willing.min(PROVEN_BY)
    }

    /// `true` if no agent of its project was told yet.
    pub(super) fn is_unheard(&self, judged: &JudgedAgent) -> bool {
        judged
            .project
            .is_some_and(|project| !self.told.contains(&project))
    }
}
