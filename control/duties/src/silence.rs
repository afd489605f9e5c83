//! Agents of rollouts that have had no session with the leader for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use control_presence::Presence;
use control_state::{AgentKey, AgentProgram, Rollout, RolloutKind, RolloutState, Tables};
use control_store::{Store, StoreError};
use proto_identity::SpiffeId;
use tokio::time::Instant;

/// Time without a session after which an agent is silent. One that replaces its program, or renews its
/// certificate, is back before.
const SILENT_AFTER: Duration = Duration::from_secs(30);

/// An agent by its kind and name: agents of several kinds on one host may have one name.
type NamedAgent = (RolloutKind, AgentKey);

/// Since when agents have no session. Only the leader keeps it.
#[derive(Debug, Default)]
pub(crate) struct SilenceLog {
    since: BTreeMap<NamedAgent, Instant>,
}

impl SilenceLog {
    /// The agents of rollouts that run which are silent. Empty while it is not known who has a session.
    ///
    /// # Errors
    /// The store is shut down.
    pub(crate) async fn look(
        &mut self,
        store: &Store,
        presence: &Presence,
    ) -> Result<BTreeSet<NamedAgent>, StoreError> {
        let agents = store.read_local(told_agents)?;
        let identities: Vec<SpiffeId> = agents.iter().map(|(_, id)| id.clone()).collect();
        if identities.is_empty() {
            self.since.clear();
            return Ok(BTreeSet::new());
        }
        let Some(sessions) = presence.agents(&identities).await? else {
            return Ok(BTreeSet::new());
        };
        let here = sessions.into_iter();
        let away = agents.into_iter().zip(here).filter(|(_, is_here)| !is_here);
        let away = away.map(|((agent, _), _)| agent).collect();
        Ok(self.silent(away, Instant::now()))
    }

    /// The silent ones of the agents without a session at this moment.
    fn silent(&mut self, away: BTreeSet<NamedAgent>, now: Instant) -> BTreeSet<NamedAgent> {
        self.since.retain(|agent, _| away.contains(agent));
        for agent in away {
            self.since.entry(agent).or_insert(now);
        }
        let silent = self.since.iter();
        silent
            .filter(|(_, since)| now.saturating_duration_since(**since) >= SILENT_AFTER)
            .map(|(agent, _)| agent.clone())
            .collect()
    }
}

/// The agents that rollouts which run have told of their release, with their identities. Firewalls have
/// none here.
fn told_agents(tables: &Tables) -> Vec<(NamedAgent, SpiffeId)> {
    let running = tables.all::<Rollout>();
    let running = running.filter(|rollout| rollout.state == RolloutState::Running);
    let told = running.flat_map(|rollout| {
        let programs = tables.all::<AgentProgram>();
        programs.filter(move |program| {
            program.kind == rollout.kind && rollout.told.contains(&program.agent)
        })
    });
    told.filter_map(|program| {
        let identity = program.identity.parse().ok()?;
        Some(((program.kind, program.agent.clone()), identity))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use proto_types::PartitionId;

    use super::*;

    #[test]
    fn an_agent_without_a_session_is_silent_after_a_while() {
        let partition: PartitionId = "p1".parse().unwrap();
        let agent = AgentKey::named(&partition, "leaf1");
        let named = (RolloutKind::Core, agent.clone());
        let away = || BTreeSet::from([named.clone()]);
        let (mut log, start) = (SilenceLog::default(), Instant::now());
        for (seconds, is_away, is_silent) in [
            (0, true, false),
            (29, true, false),
            (30, true, true),
            // It comes back, and goes again.
            (31, false, false),
            (40, true, false),
            (69, true, false),
            (70, true, true),
        ] {
            let now = start + Duration::from_secs(seconds);
            let found = match is_away {
                true => log.silent(away(), now),
                false => log.silent(BTreeSet::new(), now),
            };
            assert_eq!(found.contains(&named), is_silent, "{seconds} s");
            // The boot server of that name has a session all along.
            assert!(!found.contains(&(RolloutKind::Pixie, agent.clone())));
        }
    }
}
