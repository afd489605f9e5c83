use proto_types::{ProjectId, TenantId};

use super::RuleCandidate;

/// Most candidates of projects that wait for firewalls at once. Each may have two MiB. Further ones
/// are refused.
const WAITING_MAX: usize = 32;
/// Most candidates of one asker that wait at once: as many as one call asks.
pub(super) const WAITING_EACH_MAX: usize = 8;
/// An asker may have one part in `SHARE` of the places that are free or its own: it takes many
/// greedy tenants, not a few, to leave nothing for another one.
const SHARE: usize = 4;

/// The party that waiting candidates are counted for. Projects are cheap, so it is their tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CandidateAsker {
    /// The operator, whose places no project can take.
    Operator,
    Tenant(TenantId),
    /// A project whose tenant the node that passes the question on does not name.
    Project(ProjectId),
}

impl CandidateAsker {
    pub(super) fn of(candidate: &RuleCandidate) -> Self {
        match (&candidate.tenant, candidate.asker) {
            (_, None) => Self::Operator,
            (Some(tenant), Some(_)) => Self::Tenant(tenant.clone()),
            (None, Some(project)) => Self::Project(project),
        }
    }

    /// `true` if a question of this asker ends one of another asker: a project could have its firewall
    /// asked all the time, and keep the operator from asking it.
    pub(super) fn precedes(&self, other: &Self) -> bool {
        *self == Self::Operator && *other != Self::Operator
    }

    /// `true` if a further candidate of this asker may wait beside those of these.
    pub(super) fn has_place<'a>(&self, waiting: impl Iterator<Item = &'a Self>) -> bool {
        let (mut own, mut of_projects) = (0_usize, 0_usize);
        for asker in waiting {
            own += usize::from(asker == self);
            of_projects += usize::from(*asker != Self::Operator);
        }
        if *self == Self::Operator {
            return own < WAITING_EACH_MAX;
        }
        let free = WAITING_MAX.saturating_sub(of_projects);
        // Rounded up, so that the last free places can be taken at all.
        let share = (own + free).div_ceil(SHARE);
        free > 0 && own < WAITING_EACH_MAX.min(share)
    }
}
