//! The tenants whose firewalls speak for or against a release. What a firewall reports is its tenant's word:
//! no tenant alone stops a rollout, or lets its next wave begin.

use std::collections::BTreeSet;

use proto_types::TenantId;

use crate::rollout::entity::Rollout;
use crate::rollout::judged::{AgentStanding, JudgedAgent};

/// Tenants that must have proven a release before the next wave begins, as long as there are so many.
const PROVEN_BY: usize = 2;

/// The tenants of a rollout's agents. Agents of the site have none: their word counts alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TenantVotes<'a> {
    /// Those with agents.
    all: BTreeSet<&'a TenantId>,
    /// Those with agents that failed.
    failed: BTreeSet<&'a TenantId>,
    /// Those with agents that run the release and are healthy, without the failed ones.
    proven: BTreeSet<&'a TenantId>,
    /// Those with agents that were told.
    told: BTreeSet<&'a TenantId>,
}

impl<'a> TenantVotes<'a> {
    /// The tenants of these agents.
    pub(super) fn of(rollout: &Rollout, agents: &'a [JudgedAgent]) -> Self {
        let mut votes = Self {
            all: BTreeSet::new(),
            failed: BTreeSet::new(),
            proven: BTreeSet::new(),
            told: BTreeSet::new(),
        };
        for judged in agents {
            let Some(tenant) = &judged.tenant else {
                continue;
            };
            votes.all.insert(tenant);
            if !rollout.told.contains(&judged.agent) {
                continue;
            }
            votes.told.insert(tenant);
            if rollout.failed.contains_key(&judged.agent) {
                votes.failed.insert(tenant);
            } else if judged.standing == AgentStanding::Settled {
                votes.proven.insert(tenant);
            }
        }
        let failed = &votes.failed;
        votes.proven.retain(|tenant| !failed.contains(tenant));
        votes
    }

    /// `true` if the failures are those of one tenant among several: they stop nothing.
    pub(super) fn is_one_against_others(&self) -> bool {
        self.failed.len() == 1 && self.all.len() > 1
    }

    /// `true` if enough tenants have proven the release: two, or all that have not failed.
    pub(super) fn have_proven(&self) -> bool {
        let willing = self.all.len().saturating_sub(self.failed.len());
        self.proven.len() >= willing.min(PROVEN_BY)
    }

    /// `true` if agents of its tenant have failed.
    pub(super) fn has_failed(&self, judged: &JudgedAgent) -> bool {
        let tenant = judged.tenant.as_ref();
        tenant.is_some_and(|tenant| self.failed.contains(tenant))
    }

    /// `true` if no agent of its tenant was told yet.
    pub(super) fn is_unheard(&self, judged: &JudgedAgent) -> bool {
        let tenant = judged.tenant.as_ref();
        tenant.is_some_and(|tenant| !self.told.contains(tenant))
    }
}
