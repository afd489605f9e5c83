//! A rollout of the firewalls' agent: which firewalls are told of the release, and when.

use control_state::life::firewall_desired;
use control_state::*;
use proto_types::Digest;

use crate::firewall_standby::{add_firewall, firewalls, report};
use crate::world::*;

const URL: &str = "https://releases.example.com/metalmesh-firewall.release";
/// Time for which a wave must be healthy.
const HEALTHY_MS: u64 = 10_000;
/// Time after which an agent has failed.
const PATIENCE_MS: u64 = 60_000;

fn release(version: &str) -> AgentRelease {
    AgentRelease {
        version: version.into(),
        url: URL.into(),
        head_digest: Digest::sha256([2; 32]),
    }
}

/// One firewall first, then all.
fn start(version: &str) -> StartRollout {
    StartRollout {
        kind: RolloutKind::Firewall,
        release: release(version),
        waves: vec![WaveSize::Agents(1)],
        gate: RolloutGate {
            healthy_for_ms: HEALTHY_MS,
            patience_ms: PATIENCE_MS,
            failures_max: 0,
        },
    }
}

fn site(version: &str) -> SetFirewallRelease {
    SetFirewallRelease {
        version: version.into(),
        url: URL.into(),
        head_digest: Digest::sha256([1; 32]),
    }
}

const fn resume(failures_max: Option<u32>) -> ResumeRollout {
    ResumeRollout {
        kind: RolloutKind::Firewall,
        failures_max,
    }
}

const ABORT: AbortRollout = AbortRollout {
    kind: RolloutKind::Firewall,
};

/// Two firewalls with their rules in force, of which the first is active; the site's release is 1.2.0.
fn world() -> World {
    let mut world = firewalls(2);
    for number in [1, 2] {
        world.phone_home(number);
        world.ok(runs(number, "1.2.0", "current", "1.2.0"));
    }
    world.ok(site("1.2.0"));
    world
}

/// A report of a firewall's agent about its program.
fn runs(number: u128, version: &str, phase: &str, wanted: &str) -> ReportFirewall {
    ReportFirewall {
        agent_version: Some(version.into()),
        update: Some(FirewallUpdate {
            phase: phase.into(),
            wanted: Some(wanted.into()),
            error: None,
        }),
        ..report(number, 7, None)
    }
}

/// The version that each firewall is told of.
fn told(world: &World) -> [Option<String>; 2] {
    [1, 2].map(|number| {
        let desired = firewall_desired(&world.tables, id(number)).unwrap();
        desired.release.map(|release| release.version.clone())
    })
}

fn versions(of: [&str; 2]) -> [Option<String>; 2] {
    of.map(|version| Some(version.to_owned()))
}

/// Both firewalls give signs of life, and the leader steps as long as something is due.
fn step_later(world: &mut World, ms: u64) {
    world.later(ms);
    world.phone_home(1);
    world.phone_home(2);
    let sight = query::AgentSight {
        now: world.now,
        ..query::AgentSight::default()
    };
    while let Some(kind) = due_rollout(&world.tables, &sight) {
        world.ok(StepRollout {
            kind,
            silent: [].into(),
        });
    }
}

fn rollout(world: &World) -> Rollout {
    let found = query::rollout(&world.tables, RolloutKind::Firewall);
    Rollout::clone(found.unwrap())
}

#[test]
fn standbys_are_told_before_the_active_firewall() {
    let mut world = world();
    world.ok(start("1.3.0"));
    assert_eq!(told(&world), versions(["1.2.0", "1.2.0"]));
    step_later(&mut world, 0);
    assert_eq!(told(&world), versions(["1.2.0", "1.3.0"]));
    // Nothing is due until the standby runs it, and then for the time of the gate.
    step_later(&mut world, 5_000);
    assert_eq!(rollout(&world).settled_since, None);
    world.ok(runs(2, "1.3.0", "trial", "1.3.0"));
    step_later(&mut world, HEALTHY_MS);
    assert_eq!(told(&world), versions(["1.2.0", "1.3.0"]));
    world.ok(runs(2, "1.3.0", "current", "1.3.0"));
    step_later(&mut world, 0);
    step_later(&mut world, HEALTHY_MS);
    assert_eq!(told(&world), versions(["1.3.0", "1.3.0"]));
    world.ok(runs(1, "1.3.0", "current", "1.3.0"));
    step_later(&mut world, 0);
    step_later(&mut world, HEALTHY_MS);
    assert_eq!(rollout(&world).state, RolloutState::Done);
    let release = world
        .tables
        .get::<FirewallRelease>(&FirewallRelease::SITE.into());
    assert_eq!(release.unwrap().version, "1.3.0", "it is the site's");
    // From then on the site's release counts alone.
    world.ok(site("1.4.0"));
    assert_eq!(told(&world), versions(["1.4.0", "1.4.0"]));
    assert_eq!(world.refused(ABORT), ErrorCode::WrongRolloutState);
    assert_eq!(world.refused(resume(None)), ErrorCode::WrongRolloutState);
    world.ok(start("1.5.0"));
}

#[test]
fn a_firewall_that_is_not_healthy_is_told_after_the_others() {
    let mut world = world();
    world.ok(ReportFirewall {
        error: Some("a probe failed".into()),
        ..runs(2, "1.2.0", "current", "1.2.0")
    });
    world.ok(start("1.3.0"));
    step_later(&mut world, 0);
    assert_eq!(told(&world), versions(["1.3.0", "1.2.0"]));
}

#[test]
fn a_refusal_stops_it_until_an_operator_decides() {
    let mut world = world();
    world.ok(start("1.3.0"));
    step_later(&mut world, 0);
    world.ok(runs(2, "1.2.0", "refused", "1.3.0"));
    step_later(&mut world, 0);
    let RolloutState::Stopped { reason } = rollout(&world).state else {
        panic!("{:?}", rollout(&world));
    };
    assert!(
        reason.contains("went back to its earlier program"),
        "{reason}"
    );
    step_later(&mut world, PATIENCE_MS);
    assert_eq!(
        told(&world),
        versions(["1.2.0", "1.3.0"]),
        "no further wave"
    );
    // With one failure allowed it goes on, and the firewall stays as it is.
    world.ok(resume(Some(1)));
    step_later(&mut world, 0);
    step_later(&mut world, HEALTHY_MS);
    assert_eq!(told(&world), versions(["1.3.0", "1.3.0"]));
    world.ok(ABORT);
    assert_eq!(told(&world), versions(["1.2.0", "1.2.0"]));
    assert_eq!(world.refused(ABORT), ErrorCode::NotFound);
}

#[test]
fn a_silent_firewall_is_a_failure_when_the_time_is_over() {
    let mut world = world();
    world.ok(start("1.3.0"));
    step_later(&mut world, 0);
    step_later(&mut world, PATIENCE_MS - 1);
    assert_eq!(rollout(&world).state, RolloutState::Running);
    step_later(&mut world, 1);
    let RolloutState::Stopped { reason } = rollout(&world).state else {
        panic!("{:?}", rollout(&world));
    };
    assert!(reason.contains("it runs 1.2.0"), "{reason}");
}

#[test]
fn firewalls_that_come_later_do_not_hold_it() {
    let mut world = world();
    world.ok(start("1.3.0"));
    step_later(&mut world, 0);
    for number in [1, 2] {
        world.ok(runs(number, "1.3.0", "current", "1.3.0"));
    }
    step_later(&mut world, 0);
    // A third one runs from now on.
    add_firewall(&mut world, ["internet", "private"], 3);
    step_later(&mut world, HEALTHY_MS);
    let told = |world: &World| {
        let desired = firewall_desired(&world.tables, id(3)).unwrap();
        desired.release.map(|release| release.version.clone())
    };
    assert_eq!(told(&world).as_deref(), Some("1.2.0"));
    step_later(&mut world, 0);
    step_later(&mut world, HEALTHY_MS);
    assert_eq!(rollout(&world).state, RolloutState::Done);
    assert_eq!(told(&world).as_deref(), Some("1.3.0"), "it is the site's");
}

#[test]
fn a_wrong_plan_is_refused() {
    let mut world = world();
    let gate = start("1.3.0").gate;
    let sized = |size| StartRollout {
        waves: vec![size],
        ..start("1.3.0")
    };
    let gated = |gate| StartRollout {
        gate,
        ..start("1.3.0")
    };
    for wrong in [
        start(""),
        // The version of another release.
        start("1.2.0"),
        sized(WaveSize::Agents(0)),
        sized(WaveSize::Percent(0)),
        sized(WaveSize::Percent(101)),
        gated(RolloutGate {
            patience_ms: 0,
            ..gate
        }),
        gated(RolloutGate {
            healthy_for_ms: u64::MAX,
            ..gate
        }),
        StartRollout {
            waves: vec![WaveSize::Agents(1); 33],
            ..start("1.3.0")
        },
    ] {
        assert_eq!(
            world.refused(wrong.clone()),
            ErrorCode::InvalidField,
            "{wrong:?}"
        );
    }
    world.ok(start("1.3.0"));
    assert_eq!(world.refused(start("1.4.0")), ErrorCode::WrongRolloutState);
}

#[test]
fn an_older_control_node_is_not_sent_the_commands() {
    assert_eq!(Op::from(start("1.3.0")).level(), ROLLOUTS);
    assert_eq!(Op::from(resume(None)).level(), ROLLOUTS);
    assert_eq!(Op::from(ABORT).level(), ROLLOUTS);
    let kind = RolloutKind::Firewall;
    let silent = [].into();
    assert_eq!(Op::from(StepRollout { kind, silent }).level(), ROLLOUTS);
    assert_eq!(Op::from(PauseRollout { kind }).level(), ROLLOUTS);
}
