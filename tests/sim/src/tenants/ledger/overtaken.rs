//! Nobody starves: a claim that waits, and that a host fits, sees few such hosts go to claims that are
//! less urgent, or came later.
//!
//! The claims that fit a host are found here by the rules of the documentation, and not by the state's
//! own code.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use control_state::{
    Claim, ClaimState, DeployPolicy, HostPool, Op, PoolHost, ProjectLabels, Tables,
};
use proto_types::{ClaimId, Digest, ProjectId};

use super::applied::Applied;
use super::quotas::{HeldMachines, Holdings, has_room};

/// Most hosts that a claim may see go to later ones. A host that becomes free goes to the first in the
/// line; only what a tick finds again, such as a host whose machine came back, is found in another
/// order.
const OVERTAKEN_MAX: u32 = 16;

/// Place in the line for a host: less is earlier.
type Place = (Reverse<u32>, u64);

/// The claims that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<ClaimId, WaitingClaim>,
    most: u32,
}

#[derive(Debug)]
struct WaitingClaim {
    project: ProjectId,
    class: Digest,
    priority: u32,
    number: u64,
    overtaken: u32,
}

impl Queue {
    /// The most hosts that any claim saw go to later ones.
    pub(super) const fn most(&self) -> u32 {
        self.most
    }

    pub(super) fn check(
        &mut self,
        applied: &Applied<'_>,
        before: &Holdings,
        now: &HeldMachines,
    ) -> Result<(), String> {
        let outcome = match is_change_of_rules(&applied.command.op) {
            true => Ok(()),
            false => self.judge(applied, before, now),
        };
        self.follow(applied);
        outcome
    }

    /// Counts the hosts that went to others than the first in their line.
    fn judge(
        &mut self,
        applied: &Applied<'_>,
        before: &Holdings,
        now: &HeldMachines,
    ) -> Result<(), String> {
        let tables = applied.tables;
        for host in applied.bindings() {
            let reserved = host.before.is_some_and(|host| host.reserved.is_some());
            let Some(host) = host.after.filter(|_| !reserved) else {
                continue;
            };
            let winner = host.binding.as_ref().map(|binding| binding.claim);
            let winner = winner.and_then(|winner| tables.get::<Claim>(&winner));
            let Some(won) = winner.and_then(|winner| place(tables, winner, host)) else {
                return Err(format!("{host:?} does not fit {winner:?}"));
            };
            for id in self.heads() {
                let claim = tables.get::<Claim>(&id).filter(|claim| waits(claim));
                let Some(claim) = claim.filter(|claim| claim.spec.reuse.is_none()) else {
                    continue;
                };
                let is_first = place(tables, claim, host).is_some_and(|place| place < won);
                let has_room =
                    before.had_room(tables, claim.project) && has_room(tables, now, claim.project);
                if is_first && has_room {
                    self.overtake(id)?;
                }
            }
        }
        Ok(())
    }

    fn overtake(&mut self, id: ClaimId) -> Result<(), String> {
        let Some(waiting) = self.waiting.get_mut(&id) else {
            return Ok(());
        };
        waiting.overtaken += 1;
        self.most = self.most.max(waiting.overtaken);
        match waiting.overtaken > OVERTAKEN_MAX {
            true => Err(format!("claim {id} starves: {waiting:?}")),
            false => Ok(()),
        }
    }

    /// The first claim of each line of a project: the others wait behind it.
    fn heads(&self) -> Vec<ClaimId> {
        let mut heads: BTreeMap<(ProjectId, &Digest), (Place, ClaimId)> = BTreeMap::new();
        for (id, waiting) in &self.waiting {
            let own = ((Reverse(waiting.priority), waiting.number), *id);
            let line = (waiting.project, &waiting.class);
            let head = heads.entry(line).or_insert(own);
            *head = (*head).min(own);
        }
        heads.into_values().map(|(_, id)| id).collect()
    }

    fn follow(&mut self, applied: &Applied<'_>) {
        for claim in applied.claims() {
            let after = claim.after.filter(|claim| waits(claim));
            let Some(after) = after else {
                if let Some(gone) = claim.after.or(claim.before) {
                    self.waiting.remove(&gone.id);
                }
                continue;
            };
            let known = self.waiting.get(&after.id);
            // Another wish, or another place in the line, is another wait.
            let overtaken = known
                .filter(|known| known.class == after.queue.class)
                .filter(|known| known.number == after.queue.number)
                .map_or(0, |known| known.overtaken);
            let waiting = WaitingClaim {
                project: after.project,
                class: after.queue.class.clone(),
                priority: after.spec.priority,
                number: after.queue.number,
                overtaken,
            };
            self.waiting.insert(after.id, waiting);
        }
    }
}

fn waits(claim: &Claim) -> bool {
    claim.state == ClaimState::Pending && !claim.spec.paused
}

/// Commands of administrators after which claims are served project by project.
fn is_change_of_rules(op: &Op) -> bool {
    matches!(
        op,
        Op::SetPool(_) | Op::DeletePool(_) | Op::SetProjectLabels(_) | Op::SetQuota(_)
    )
}

/// The place of a claim in the line for a host. `None` means that the host does not fit it.
fn place(tables: &Tables, claim: &Claim, host: &PoolHost) -> Option<Place> {
    let spec = &claim.spec;
    let pool = tables.get::<HostPool>(&host.pool)?;
    let highest = highest(tables, claim.project, &pool.policies)?;
    let is_let_in =
        host.only.is_empty() || self::highest(tables, claim.project, &host.only).is_some();
    let is_named = spec.pools.is_empty() || spec.pools.contains(&pool.id);
    let is_tolerated = host.taints.iter().all(|taint| {
        spec.tolerations.iter().any(|tolerated| {
            let value = tolerated.value.as_ref();
            tolerated.key == taint.key && value.is_none_or(|value| *value == taint.value)
        })
    });
    let domain = spec.domain.as_ref();
    let is_there = domain.is_none_or(|wish| !wish.required || wish.name == host.domain);
    let is_selected = spec.selector.holds(|key| {
        let value = host.meta.labels.get(key)?;
        pool.publishes(key).then_some(value.as_str())
    });
    let fits = is_let_in && is_named && is_tolerated && is_there && is_selected;
    fits.then(|| (Reverse(spec.priority.min(highest)), claim.queue.number))
}

/// The highest priority that policies let a project have. `None` means that none admits it.
fn highest(tables: &Tables, project: ProjectId, policies: &[DeployPolicy]) -> Option<u32> {
    let known = tables.get::<ProjectLabels>(&project);
    let admits = |policy: &&DeployPolicy| {
        let has_labels = policy.labels.iter().all(|wanted| {
            let value = known.and_then(|known| known.labels.get(&wanted.name));
            value.is_some_and(|value| wanted.value.as_ref().is_none_or(|wanted| wanted == value))
        });
        has_labels && (policy.projects.is_empty() || policy.projects.contains(&project))
    };
    let admitting = policies.iter().filter(admits);
    admitting.map(|policy| policy.priority_max).max()
}
