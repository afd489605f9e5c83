//! Rollouts step by step, over agents that settle, dawdle and fail.

use std::collections::BTreeMap;

use proto_types::{Digest, MachineId, Timestamp};
use uuid::Uuid;

use super::decision::advance;
use super::entity::{
    AgentKey, AgentRelease, Rollout, RolloutGate, RolloutKind, RolloutState, WaveSize,
};
use super::judged::{AgentStanding, JudgedAgent};

/// Time for which a wave must be healthy.
pub(super) const HEALTHY_MS: u64 = 10_000;
/// Time after which an agent has failed.
pub(super) const PATIENCE_MS: u64 = 60_000;

pub(super) fn agent(number: u128) -> AgentKey {
    MachineId::new(Uuid::from_u128(number)).into()
}

fn plan(waves: &[WaveSize], failures_max: u32) -> Rollout {
    Rollout {
        kind: RolloutKind::Firewall,
        release: AgentRelease {
            version: "1.3.0".into(),
            url: "https://releases.example.com/x".into(),
            head_digest: Digest::sha256([1; 32]),
        },
        waves: waves.to_vec(),
        gate: RolloutGate {
            healthy_for_ms: HEALTHY_MS,
            patience_ms: PATIENCE_MS,
            failures_max,
        },
        state: RolloutState::Running,
        wave: 0,
        wave_since: Timestamp::ZERO,
        settled_since: None,
        members: None,
        told: [].into(),
        failed: BTreeMap::new(),
        started_by: "ada".into(),
        started_at: Timestamp::ZERO,
    }
}

/// A site of agents, and the rollout over them.
pub(super) struct Site {
    pub(super) rollout: Rollout,
    pub(super) agents: Vec<JudgedAgent>,
    now: Timestamp,
}

impl Site {
    pub(super) fn new(agents: u128, waves: &[WaveSize], failures_max: u32) -> Self {
        let agents = (1..=agents).map(|number| JudgedAgent {
            agent: agent(number),
            tenant: None,
            standing: AgentStanding::OnTheWay("it runs 1.2.0".into()),
        });
        Self {
            rollout: plan(waves, failures_max),
            agents: agents.collect(),
            now: Timestamp::from_ms(1_000_000),
        }
    }

    /// Steps once, so much later.
    pub(super) fn later(&mut self, ms: u64) -> &Rollout {
        self.now = self.now.plus_ms(ms);
        self.rollout = advance(&self.rollout, self.agents.clone(), self.now);
        &self.rollout
    }

    pub(super) fn stand(&mut self, number: u128, standing: AgentStanding) {
        let mut agents = self.agents.iter_mut();
        let found = agents.find(|judged| judged.agent == agent(number));
        found.unwrap().standing = standing;
    }

    /// All agents that were told of the release run it.
    pub(super) fn settle(&mut self) {
        for judged in &mut self.agents {
            if self.rollout.told.contains(&judged.agent) {
                judged.standing = AgentStanding::Settled;
            }
        }
    }

    /// Number of the wave, and of the agents that were told.
    pub(super) fn reach(&self) -> (u32, usize) {
        (self.rollout.wave, self.rollout.told.len())
    }

    pub(super) fn stop_reason(&self) -> &str {
        match &self.rollout.state {
            RolloutState::Stopped { reason } => reason,
            other => panic!("{other:?}"),
        }
    }
}

pub(super) fn refused() -> AgentStanding {
    AgentStanding::Refused("it went back".into())
}

#[test]
fn a_wave_follows_when_the_one_before_was_healthy_for_long_enough() {
    let waves = [WaveSize::Agents(1), WaveSize::Percent(50)];
    let mut site = Site::new(10, &waves, 0);
    for reach in [(1, 1), (2, 5), (3, 10)] {
        site.later(0);
        assert_eq!(site.reach(), reach);
        site.later(HEALTHY_MS);
        assert_eq!(site.reach(), reach, "no agent has settled");
        site.settle();
        site.later(0);
        site.later(HEALTHY_MS - 1);
        assert_eq!(site.reach(), reach, "not for long enough");
        site.now = site.now.plus_ms(1);
    }
    assert_eq!(site.later(0).state, RolloutState::Done);
    // Nothing happens any more.
    let done = site.rollout.clone();
    assert_eq!(*site.later(PATIENCE_MS), done);
}

#[test]
fn an_agent_that_falters_begins_the_time_anew() {
    let mut site = Site::new(2, &[WaveSize::Agents(1)], 0);
    site.later(0);
    site.settle();
    site.later(0);
    site.stand(
        1,
        AgentStanding::OnTheWay("it gives no sign of life".into()),
    );
    assert_eq!(site.later(HEALTHY_MS - 1).settled_since, None);
    site.settle();
    site.later(1);
    site.later(HEALTHY_MS - 1);
    assert_eq!(site.reach(), (1, 1));
    site.later(1);
    assert_eq!(site.reach(), (2, 2));
}

#[test]
fn a_failure_more_than_may_stops_it_and_says_why() {
    for (what, standing, wait_ms) in [
        ("refused", refused(), 0),
        (
            "too late",
            AgentStanding::OnTheWay("it runs 1.2.0".into()),
            PATIENCE_MS,
        ),
    ] {
        let mut site = Site::new(4, &[WaveSize::Agents(2)], 0);
        site.later(0);
        site.settle();
        site.stand(2, standing);
        site.later(wait_ms);
        let reason = site.stop_reason();
        assert!(reason.starts_with("1 agents failed, 0 may: "), "{reason}");
        assert!(reason.contains(&agent(2).to_string()), "{what}: {reason}");
        let stopped = site.rollout.clone();
        site.settle();
        assert_eq!(
            *site.later(PATIENCE_MS),
            stopped,
            "until somebody resumes it"
        );
    }
}

#[test]
fn failures_that_may_happen_do_not_hold_the_next_wave() {
    let mut site = Site::new(4, &[WaveSize::Agents(2)], 1);
    site.later(0);
    site.settle();
    site.stand(2, refused());
    site.later(0);
    site.later(HEALTHY_MS);
    assert_eq!(site.reach(), (2, 4));
    assert_eq!(site.rollout.failed.len(), 1);
    // It settles after all, and another one may fail.
    site.settle();
    site.stand(3, refused());
    site.later(0);
    assert_eq!(site.rollout.state, RolloutState::Running);
    let failed: Vec<_> = site.rollout.failed.keys().cloned().collect();
    assert_eq!(failed, [agent(3)]);
    site.stand(4, refused());
    site.later(0);
    assert!(site.stop_reason().contains("2 agents failed, 1 may"));
}

#[test]
fn agents_that_come_later_do_not_hold_it() {
    let mut site = Site::new(4, &[WaveSize::Agents(2)], 0);
    site.later(0);
    assert_eq!(site.reach(), (1, 2));
    site.settle();
    // A firewall that was told is freed, and another one runs on its machine later. Others come.
    let freed = site.agents.remove(0);
    site.later(0);
    assert_eq!(site.reach(), (1, 1));
    site.agents.push(freed);
    let newcomer = |number| JudgedAgent {
        agent: agent(number),
        tenant: None,
        standing: AgentStanding::OnTheWay("it runs 1.2.0".into()),
    };
    site.agents.extend((5..=8).map(newcomer));
    site.later(HEALTHY_MS);
    assert_eq!(site.reach(), (2, 3), "all that were there and still are");
    site.settle();
    site.later(0);
    site.agents.push(newcomer(9));
    assert_eq!(site.later(HEALTHY_MS).state, RolloutState::Done);
    let told: Vec<_> = site.rollout.told.iter().cloned().collect();
    assert_eq!(told, [agent(2), agent(3), agent(4)]);
}

#[test]
fn a_rollout_of_an_earlier_program_is_for_all() {
    let mut site = Site::new(2, &[WaveSize::Agents(1)], 0);
    site.later(0);
    site.rollout.members = None;
    site.agents.push(JudgedAgent {
        agent: agent(3),
        tenant: None,
        standing: AgentStanding::Settled,
    });
    site.settle();
    site.later(0);
    site.later(HEALTHY_MS);
    assert_eq!(site.reach(), (2, 3));
}

#[test]
fn a_wave_that_adds_nobody_is_left_out() {
    let waves = [
        WaveSize::Agents(2),
        WaveSize::Percent(10),
        WaveSize::Agents(1),
    ];
    let mut site = Site::new(3, &waves, 0);
    site.later(0);
    assert_eq!(site.reach(), (1, 2));
    site.settle();
    site.later(0);
    site.later(HEALTHY_MS);
    assert_eq!(site.reach(), (4, 3));
    let mut nobody = Site::new(0, &[], 0);
    assert_eq!(nobody.later(0).state, RolloutState::Done);
}

#[test]
fn sizes_are_rounded_up_and_bounded() {
    for (size, all, wanted) in [
        (WaveSize::Percent(10), 5, 1),
        (WaveSize::Percent(50), 5, 3),
        (WaveSize::Percent(100), 5, 5),
        (WaveSize::Percent(1), 0, 0),
        (WaveSize::Agents(3), 5, 3),
        (WaveSize::Agents(9), 5, 5),
    ] {
        assert_eq!(size.of(all), wanted, "{size:?} of {all}");
    }
}
