//! A rollout of the agents of switches: which are told of the release, and what counts as a failure.

use std::collections::BTreeSet;

use control_state::query::{AgentSight, agent_release, judged_agents};
use control_state::*;
use proto_types::Digest;

use crate::world::*;

/// Time for which a wave must be healthy.
const HEALTHY_MS: u64 = 10_000;
/// Time after which an agent has failed.
const PATIENCE_MS: u64 = 60_000;
/// Validity of certificates, shorter than the time after which an agent has failed.
const LIFE_MS: u64 = 30_000;
const CORE: RolloutKind = RolloutKind::Core;

fn identity(leaf: &str) -> String {
    format!("spiffe://test/partition/{PARTITION}/core/{leaf}")
}

fn agent(leaf: &str) -> AgentKey {
    AgentKey::named(&text(PARTITION), leaf)
}

fn release(version: &str) -> AgentRelease {
    AgentRelease {
        version: version.into(),
        url: "https://releases.example.com/metalmesh-core.release".into(),
        head_digest: Digest::sha256([2; 32]),
    }
}

fn start(version: &str) -> StartRollout {
    StartRollout {
        kind: CORE,
        release: release(version),
        waves: vec![WaveSize::Agents(1)],
        gate: RolloutGate {
            healthy_for_ms: HEALTHY_MS,
            patience_ms: PATIENCE_MS,
            failures_max: 0,
        },
    }
}

/// A report of an agent about its program.
fn runs(leaf: &str, version: &str, phase: &str, wanted: &str) -> ReportAgent {
    ReportAgent {
        identity: identity(leaf),
        kind: CORE,
        agent: agent(leaf),
        version: version.into(),
        phase: phase.into(),
        wanted: (!wanted.is_empty()).then(|| wanted.into()),
        error: None,
        ailment: None,
    }
}

/// The agent of a leaf joins.
fn join(world: &mut World, number: u128, leaf: &str) {
    join_as(world, number, AgentKind::Core, leaf);
}

/// An agent of a kind joins.
pub(crate) fn join_as(world: &mut World, number: u128, kind: AgentKind, name: &str) {
    world.ok(CreateJoinTicket {
        id: id(number),
        kind,
        partition: text(PARTITION),
        agent: name.into(),
        secret: sha(1),
        key: None,
        tpm: None,
        reenrols: false,
        expires_at: world.now.plus_ms(900_000),
    });
    world.ok(RedeemJoinTicket {
        id: id(number),
        secret: sha(1),
        key: sha(7),
        tpm: None,
    });
    world.ok(IssueCertificate {
        certificate: Certificate {
            serial: name.into(),
            identity: format!(
                "spiffe://test/partition/{PARTITION}/{}/{name}",
                kind.as_str()
            ),
            issued_at: world.now,
            not_after: world.now.plus_ms(LIFE_MS),
            machine: None,
            allocation: None,
            key: Some(sha(7)),
            authority: 1,
            revoked_at: None,
            revoked_reason: String::new(),
        },
        cause: Cause::Join(JoinedBy::JoinTicket(id(number))),
    });
}

/// Two leaves with 1.2.0.
fn world() -> World {
    let mut world = World::new();
    for (number, leaf) in [(1, "leaf1"), (2, "leaf2")] {
        join(&mut world, number, leaf);
        world.ok(runs(leaf, "1.2.0", "nothing_wanted", ""));
    }
    world
}

/// The leader steps as long as something is due. `silent` have no session.
fn step_later(world: &mut World, ms: u64, silent: &[&str]) {
    world.later(ms);
    loop {
        let silent: BTreeSet<AgentKey> = silent.iter().map(|leaf| agent(leaf)).collect();
        let named = silent.iter().cloned();
        let sight = AgentSight {
            now: world.now,
            silent: named.map(|agent| (CORE, agent)).collect(),
        };
        let Some(kind) = due_rollout(&world.tables, &sight) else {
            return;
        };
        world.ok(StepRollout { kind, silent });
    }
}

/// The version that each leaf is told of.
fn told(world: &World) -> [Option<String>; 2] {
    ["leaf1", "leaf2"].map(|leaf| {
        let told = agent_release(&world.tables, CORE, &agent(leaf));
        told.map(|release| release.version)
    })
}

fn versions(of: [&str; 2]) -> [Option<String>; 2] {
    of.map(|version| (!version.is_empty()).then(|| version.to_owned()))
}

fn state(world: &World) -> RolloutState {
    query::rollout(&world.tables, CORE).unwrap().state.clone()
}

#[test]
fn a_release_goes_from_leaf_to_leaf_and_becomes_the_sites() {
    let mut world = world();
    assert_eq!(told(&world), versions(["", ""]));
    world.ok(start("1.3.0"));
    step_later(&mut world, 0, &[]);
    assert_eq!(told(&world), versions(["1.3.0", ""]));
    world.ok(runs("leaf1", "1.3.0", "current", "1.3.0"));
    step_later(&mut world, 0, &[]);
    step_later(&mut world, HEALTHY_MS, &[]);
    assert_eq!(told(&world), versions(["1.3.0", "1.3.0"]));
    world.ok(runs("leaf2", "1.3.0", "current", "1.3.0"));
    step_later(&mut world, 0, &[]);
    step_later(&mut world, HEALTHY_MS, &[]);
    assert_eq!(state(&world), RolloutState::Done);
    assert_eq!(told(&world), versions(["1.3.0", "1.3.0"]));
    // Boot servers are told of nothing.
    let others = agent_release(&world.tables, RolloutKind::Pixie, &agent("leaf1"));
    assert_eq!(others, None);
    // The version of another release.
    let mut other = start("1.3.0");
    other.release.head_digest = Digest::sha256([3; 32]);
    assert_eq!(world.refused(other), ErrorCode::InvalidField);
}

#[test]
fn an_agent_that_goes_silent_with_the_release_stops_it() {
    let mut world = world();
    world.ok(start("1.3.0"));
    step_later(&mut world, 0, &[]);
    world.ok(runs("leaf1", "1.3.0", "current", "1.3.0"));
    step_later(&mut world, 0, &["leaf1"]);
    step_later(&mut world, HEALTHY_MS, &["leaf1"]);
    assert_eq!(told(&world), versions(["1.3.0", ""]), "no further wave");
    // It counts although its certificate ends meanwhile.
    step_later(&mut world, PATIENCE_MS, &["leaf1"]);
    let RolloutState::Stopped { reason } = state(&world) else {
        panic!("{:?}", state(&world));
    };
    assert!(reason.contains("has no session with control"), "{reason}");
    world.ok(AbortRollout { kind: CORE });
    assert_eq!(told(&world), versions(["", ""]));
}

/// A boot server, say, may have the name of a switch's agent: one that is silent says nothing of the other.
#[test]
fn an_agent_of_another_kind_with_the_same_name_may_be_silent() {
    let mut world = world();
    world.ok(start("1.3.0"));
    step_later(&mut world, 0, &[]);
    world.ok(runs("leaf1", "1.3.0", "current", "1.3.0"));
    let rollout = query::rollout(&world.tables, CORE).unwrap();
    for (kind, is_settled) in [(RolloutKind::Pixie, true), (CORE, false)] {
        let sight = AgentSight {
            now: world.now,
            silent: [(kind, agent("leaf1"))].into(),
        };
        let judged = judged_agents(&world.tables, rollout, &sight);
        let own = judged.iter().find(|judged| judged.agent == agent("leaf1"));
        let standing = &own.unwrap().standing;
        assert_eq!(*standing == AgentStanding::Settled, is_settled, "{kind:?}");
    }
}

#[test]
fn an_agent_that_does_not_do_its_work_holds_the_next_wave() {
    let mut world = world();
    world.ok(start("1.3.0"));
    step_later(&mut world, 0, &[]);
    world.ok(ReportAgent {
        ailment: Some("no pass has found the switch as desired yet".into()),
        ..runs("leaf1", "1.3.0", "current", "1.3.0")
    });
    step_later(&mut world, 0, &[]);
    step_later(&mut world, HEALTHY_MS, &[]);
    assert_eq!(told(&world), versions(["1.3.0", ""]));
}

#[test]
fn a_paused_rollout_goes_on_when_it_is_resumed() {
    let mut world = world();
    assert_eq!(
        world.refused(PauseRollout { kind: CORE }),
        ErrorCode::NotFound
    );
    world.ok(start("1.3.0"));
    world.ok(PauseRollout { kind: CORE });
    step_later(&mut world, 0, &[]);
    assert_eq!(told(&world), versions(["", ""]));
    let RolloutState::Stopped { reason } = state(&world) else {
        panic!("{:?}", state(&world));
    };
    assert!(reason.contains("has paused it"), "{reason}");
    // A second word changes nothing.
    world.ok(PauseRollout { kind: CORE });
    world.ok(ResumeRollout {
        kind: CORE,
        failures_max: None,
    });
    step_later(&mut world, 0, &[]);
    assert_eq!(told(&world), versions(["1.3.0", ""]));
}

#[test]
fn the_program_of_an_agent_ends_with_its_identity() {
    let mut world = world();
    world.ok(start("1.3.0"));
    world.ok(RevokeIdentity {
        identity: identity("leaf1"),
        reason: "stolen".into(),
    });
    let late = runs("leaf1", "1.3.0", "current", "1.3.0");
    assert_eq!(world.refused(late), ErrorCode::CertificateRevoked);
    let stranger = runs("leaf9", "1.3.0", "current", "1.3.0");
    assert_eq!(world.refused(stranger), ErrorCode::NotFound);
    let firewall = ReportAgent {
        kind: RolloutKind::Firewall,
        ..runs("leaf2", "1.2.0", "off", "")
    };
    assert_eq!(world.refused(firewall), ErrorCode::InvalidField);
    // The other leaf alone is told.
    step_later(&mut world, 0, &[]);
    assert_eq!(told(&world), versions(["", "1.3.0"]));
}

#[test]
fn a_release_that_is_cleared_is_told_to_nobody() {
    let mut world = world();
    let clear = |kind| ClearRelease { kind };
    let site = |world: &World| query::release_of_site(&world.tables, CORE);
    assert_eq!(world.ok(clear(CORE)), Reply::None);
    world.ok(start("1.3.0"));
    assert_eq!(world.refused(clear(CORE)), ErrorCode::WrongRolloutState);
    for leaf in ["leaf1", "leaf2"] {
        world.ok(runs(leaf, "1.3.0", "current", "1.3.0"));
    }
    for _ in 0..3 {
        step_later(&mut world, HEALTHY_MS, &[]);
    }
    assert_eq!(state(&world), RolloutState::Done);
    assert_eq!(site(&world).unwrap().release.version, "1.3.0");
    // Those of another kind stay as they are.
    assert_eq!(world.ok(clear(RolloutKind::Pixie)), Reply::None);
    assert_eq!(told(&world), versions(["1.3.0", "1.3.0"]));
    let cleared = world.ok(clear(CORE)).site_release().unwrap();
    assert_eq!(cleared.release.version, "1.3.0");
    assert_eq!(told(&world), versions(["", ""]));
    assert_eq!(site(&world), None);
    assert_eq!(world.ok(clear(CORE)), Reply::None);
}

#[test]
fn an_older_control_node_is_not_sent_the_reports() {
    let report = runs("leaf1", "1.2.0", "off", "");
    assert_eq!(Op::from(report).level(), ROLLOUTS);
    assert_eq!(Op::from(ClearRelease { kind: CORE }).level(), ROLLOUTS);
}
