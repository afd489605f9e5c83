//! A rollout of the agents of BMCs: one whose agent loses the BMCs of its partition stops.

use control_state::query::AgentSight;
use control_state::*;
use proto_types::Digest;

use crate::agent_rollout::join_as;
use crate::world::*;

/// Time for which a wave must be healthy.
const HEALTHY_MS: u64 = 10_000;
/// Time after which an agent has failed.
const PATIENCE_MS: u64 = 60_000;
const BMC: RolloutKind = RolloutKind::Bmc;

/// A report of the partition's agent about its program.
fn runs(version: &str, phase: &str, wanted: Option<&str>) -> ReportAgent {
    ReportAgent {
        identity: format!("spiffe://test/partition/{PARTITION}/bmc/b1"),
        kind: BMC,
        agent: AgentKey::named(&text(PARTITION), "b1"),
        version: version.into(),
        phase: phase.into(),
        wanted: wanted.map(str::to_owned),
        error: None,
        ailment: None,
    }
}

/// The agent tells how readings of some machines' BMCs went.
fn read(world: &mut World, machines: &[u128], error: Option<&str>) {
    let observed_at = world.now;
    let readings = machines.iter().map(|number| BmcReading {
        machine: Some(id(*number)),
        address: format!("10.0.0.{number}:623"),
        power_state: "on".into(),
        error: error.map(str::to_owned),
        observed_at,
        ..BmcReading::default()
    });
    let readings = readings.collect();
    world.ok(ReportBmc {
        partition: text(PARTITION),
        readings,
    });
}

/// The leader steps as long as something is due.
fn step_later(world: &mut World, ms: u64) -> RolloutState {
    world.later(ms);
    let sight = AgentSight {
        now: world.now,
        silent: [].into(),
    };
    while let Some(kind) = due_rollout(&world.tables, &sight) {
        let silent = [].into();
        world.ok(StepRollout { kind, silent });
    }
    query::rollout(&world.tables, BMC).unwrap().state.clone()
}

/// An agent that has taken a release, in a partition with three BMCs that are reached and one that is not.
fn world() -> World {
    let mut world = upgraded();
    join_as(&mut world, 1, AgentKind::Bmc, "b1");
    world.ok(runs("1.2.0", "nothing_wanted", None));
    read(&mut world, &[1, 2, 3], None);
    read(&mut world, &[4], Some("timeout"));
    world.later(1);
    world.ok(StartRollout {
        kind: BMC,
        release: AgentRelease {
            version: "1.3.0".into(),
            url: "https://releases.example.com/metalmesh-bmc.release".into(),
            head_digest: Digest::sha256([2; 32]),
        },
        waves: vec![],
        gate: RolloutGate {
            healthy_for_ms: HEALTHY_MS,
            patience_ms: PATIENCE_MS,
            failures_max: 0,
        },
    });
    step_later(&mut world, 0);
    world.ok(runs("1.3.0", "current", Some("1.3.0")));
    world
}

#[test]
fn an_agent_that_loses_the_bmcs_of_its_partition_stops_it() {
    let mut world = world();
    assert_eq!(step_later(&mut world, 0), RolloutState::Running);
    // The agent has a session, and says that it is well.
    read(&mut world, &[2, 3, 4], Some("timeout"));
    step_later(&mut world, 0);
    assert_eq!(step_later(&mut world, HEALTHY_MS), RolloutState::Running);
    let RolloutState::Stopped { reason } = step_later(&mut world, PATIENCE_MS) else {
        panic!("it did not stop");
    };
    let expected = "1 of the 3 BMCs that were reached before the rollout are reached";
    assert!(reason.contains(expected), "{reason}");
}

#[test]
fn bmcs_that_were_not_reached_before_do_not_count() {
    let mut world = world();
    read(&mut world, &[3, 4], Some("timeout"));
    step_later(&mut world, 0);
    assert_eq!(step_later(&mut world, HEALTHY_MS), RolloutState::Done);
}
