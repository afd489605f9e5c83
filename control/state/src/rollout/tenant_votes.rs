//! The tenants whose firewalls speak for or against a release. What a firewall reports is its tenant's word:
//! no tenant alone stops a rollout, or lets its next wave begin; nor do two stop one at a site of many, as
//! they may be one user's.

use std::collections::BTreeSet;

use proto_types::TenantId;

use crate::rollout::entity::Rollout;
use crate::rollout::judged::{AgentStanding, JudgedAgent};

/// Tenants that must have proven a release before the next wave begins, as long as there are so many.
const PROVEN_BY: usize = 2;

/// Tenants of a site up to which two that failed stop a rollout: they are a third of it, and its operator
/// knows them all.
const SMALL_SITE: usize = 6;

/// Tenants that must have failed at a larger site.
const FAILED_BY: usize = 3;

/// One in so many tenants that were told must have failed: a release that is bad for a fifth of the tenants
/// stops, and a few of very many that fail do not decide for the others.
const FAILED_SHARE: usize = 5;

/// Tenants that must have failed, of `all` of the site and those that were told, before failures stop a
/// rollout.
fn failures_needed(all: usize, told: usize) -> usize {
    let least = match all {
        0 | 1 => all,
        2..=SMALL_SITE => 2,
        _ => FAILED_BY,
    };
    least.max(told.div_ceil(FAILED_SHARE))
}

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

    /// `true` if the failures are those of too few tenants: they stop nothing. Failures of agents of the
    /// site, which have no tenant, count alone.
    pub(super) fn are_few_against_others(&self) -> bool {
        let failed = self.failed.len();
        failed > 0 && failed < failures_needed(self.all.len(), self.told.len())
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

#[cfg(test)]
mod tests {
    use super::failures_needed;

    #[test]
    fn failures_stop_a_rollout_in_proportion_to_the_tenants() {
        for (all, told, needed) in [
            (0, 0, 0),
            // Small sites: as before there were many tenants.
            (1, 1, 1),
            (2, 1, 2),
            (2, 2, 2),
            (3, 3, 2),
            (6, 6, 2),
            // Two tenants may be one user's.
            (7, 2, 3),
            (7, 7, 3),
            (100, 3, 3),
            (100, 15, 3),
            (100, 16, 4),
            (100, 100, 20),
        ] {
            assert_eq!(failures_needed(all, told), needed, "{told} of {all}");
        }
    }
}
