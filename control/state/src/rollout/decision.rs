//! The next state of a rollout, from the standing of its agents and the time.

use std::collections::BTreeSet;

use proto_types::Timestamp;

use crate::rollout::entity::{AgentKey, Rollout, RolloutState};
use crate::rollout::judged::{AgentStanding, JudgedAgent};
use crate::rollout::tenant_votes::TenantVotes;

/// Failed agents that the cause of a stop names; the others are counted.
const NAMED_MAX: usize = 3;

/// The rollout as it is at `now`. `agents` are all agents, in the order in which they get the release.
/// A rollout that does not run stays as it is.
pub(crate) fn advance(rollout: &Rollout, mut agents: Vec<JudgedAgent>, now: Timestamp) -> Rollout {
    let mut next = rollout.clone();
    if next.state != RolloutState::Running {
        return next;
    }
    keep_members(&mut next, &mut agents);
    let agents = agents.as_slice();
    judge_told(&mut next, agents, now);
    let votes = TenantVotes::of(&next, agents);
    if let Some(reason) = excess_of_failures(&next, &votes) {
        next.settled_since = None;
        next.state = RolloutState::Stopped { reason };
        return next;
    }
    let is_quiet = next.wave > 0 && pending(&next, agents) == 0;
    if is_quiet && !votes.have_proven() {
        widen_wave(&mut next, agents, &votes, now);
        return next;
    }
    next.settled_since = is_quiet.then(|| next.settled_since.unwrap_or(now));
    let settled_ms = next.settled_since.map(|since| now.since_ms(since));
    let is_proven = settled_ms.is_some_and(|ms| ms >= next.gate.healthy_for_ms);
    if next.wave > 0 && !is_proven {
        return next;
    }
    if next.told.len() >= agents.len() {
        next.state = RolloutState::Done;
        // From now on the release is that of all agents.
        next.members = None;
        return next;
    }
    begin_wave(&mut next, agents, &votes, now);
    next
}

/// Keeps the agents that the rollout is for, and in the rollout those that are there.
///
/// Agents that come after its begin do not hold it: a project that makes firewall after firewall, on
/// machines of before or on others, would otherwise add wave after wave. They are told of the release when it
/// is done, and of no release that others have not proven.
fn keep_members(rollout: &mut Rollout, agents: &mut Vec<JudgedAgent>) {
    let all: BTreeSet<&AgentKey> = agents.iter().map(|judged| &judged.agent).collect();
    if rollout.wave == 0 {
        rollout.members = Some(all.iter().map(|agent| (*agent).clone()).collect());
    }
    // An agent that is gone, such as that of a firewall that was freed, is nobody's failure.
    if let Some(members) = &mut rollout.members {
        members.retain(|agent| all.contains(agent));
    }
    rollout.told.retain(|agent| all.contains(agent));
    rollout.failed.retain(|agent, _| all.contains(agent));
    agents.retain(|judged| rollout.is_for(&judged.agent));
}

/// Takes agents that settled late off the failed ones, and adds those that failed.
fn judge_told(rollout: &mut Rollout, agents: &[JudgedAgent], now: Timestamp) {
    let waited_ms = now.since_ms(rollout.wave_since);
    let is_late = waited_ms >= rollout.gate.patience_ms;
    let told = agents
        .iter()
        .filter(|judged| rollout.told.contains(&judged.agent));
    for JudgedAgent {
        agent, standing, ..
    } in told
    {
        let reason = match standing {
            AgentStanding::Settled => {
                rollout.failed.remove(agent);
                continue;
            }
            AgentStanding::OnTheWay(_) if !is_late => continue,
            AgentStanding::OnTheWay(reason) | AgentStanding::Refused(reason) => reason,
        };
        // The first cause stays: later ones often follow from it.
        let entry = rollout.failed.entry(agent.clone());
        entry.or_insert_with(|| reason.clone());
    }
}

/// Agents that the next wave waits for.
fn pending(rollout: &Rollout, agents: &[JudgedAgent]) -> usize {
    let waited_for = |judged: &&JudgedAgent| {
        rollout.told.contains(&judged.agent)
            && !rollout.failed.contains_key(&judged.agent)
            && judged.standing != AgentStanding::Settled
    };
    agents.iter().filter(waited_for).count()
}

/// The cause of a stop. `None` means that no more agents failed than may, or those of too few tenants.
fn excess_of_failures(rollout: &Rollout, votes: &TenantVotes<'_>) -> Option<String> {
    let count = rollout.failed.len();
    let most = usize::try_from(rollout.gate.failures_max).unwrap_or(usize::MAX);
    if count <= most || votes.are_few_against_others() {
        return None;
    }
    let named = rollout.failed.iter().take(NAMED_MAX);
    let named = named.map(|(agent, reason)| format!("{agent}: {reason}"));
    let named = named.collect::<Vec<_>>().join("; ");
    let more = match count.saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some(format!("{count} agents failed, {most} may: {named}{more}"))
}

/// Tells one agent of a further tenant of the release, within the same wave: those that were told are
/// not proof enough.
fn widen_wave(
    rollout: &mut Rollout,
    agents: &[JudgedAgent],
    votes: &TenantVotes<'_>,
    now: Timestamp,
) {
    let unheard = agents.iter().find(|judged| votes.is_unheard(judged));
    if let Some(judged) = unheard {
        rollout.told.insert(judged.agent.clone());
        rollout.wave_since = now;
    }
    rollout.settled_since = None;
}

/// Tells further agents of the release: up to the size of the next wave that has any, and of all in
/// the last one. Those of a tenant whose agents have failed come last: the release may be bad for it alone.
fn begin_wave(
    rollout: &mut Rollout,
    agents: &[JudgedAgent],
    votes: &TenantVotes<'_>,
    now: Timestamp,
) {
    let all = agents.len();
    let begun = usize::try_from(rollout.wave).unwrap_or(usize::MAX);
    let later = rollout.waves.iter().enumerate().skip(begun);
    let mut sized = later.map(|(at, size)| (at, size.of(all)));
    let next = sized.find(|(_, size)| *size > rollout.told.len());
    let (at, size) = next.unwrap_or((rollout.waves.len(), all));
    let untold = agents
        .iter()
        .filter(|judged| !rollout.told.contains(&judged.agent));
    let mut untold: Vec<&JudgedAgent> = untold.collect();
    untold.sort_by_key(|judged| votes.has_failed(judged));
    let missing = size.saturating_sub(rollout.told.len());
    let chosen = untold.into_iter().take(missing);
    let chosen = chosen.map(|judged| judged.agent.clone());
    rollout.told.extend(chosen);
    let wave = at.max(begun).saturating_add(1);
    rollout.wave = u32::try_from(wave).unwrap_or(u32::MAX);
    rollout.wave_since = now;
    rollout.settled_since = None;
}
