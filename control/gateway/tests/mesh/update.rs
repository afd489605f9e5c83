//! The release of an agent's program: control names it in waves, and hears what becomes of it.

use control_state::query::AgentSight;
use control_state::{
    AgentKind, AgentProgram, AgentRelease, RolloutGate, RolloutKind, StartRollout, StepRollout,
    WaveSize, due_rollout,
};
use proto_mesh::{UpdateDesired, UpdateDesiredRequest, UpdateReport, UpdateServiceClient};
use proto_types::Digest;

use crate::fixture::*;

fn runs(version: &str, phase: &str, wanted: &str) -> UpdateReport {
    UpdateReport {
        version: version.to_owned(),
        phase: phase.to_owned(),
        wanted: wanted.to_owned(),
        ..Default::default()
    }
}

/// A rollout of 1.3.0 to one leaf first, and then to all.
fn start() -> StartRollout {
    StartRollout {
        kind: RolloutKind::Core,
        release: AgentRelease {
            version: "1.3.0".to_owned(),
            url: "https://releases.example.com/metalmesh-core.release".to_owned(),
            head_digest: Digest::sha256([1; 32]),
        },
        waves: vec![WaveSize::Agents(1)],
        gate: RolloutGate {
            healthy_for_ms: 0,
            patience_ms: 3_600_000,
            failures_max: 0,
        },
    }
}

/// The leader's steps, as long as something is due.
async fn step(control: &Control) {
    loop {
        let sight = AgentSight {
            now: control.store.now(),
            ..AgentSight::default()
        };
        let due = control
            .store
            .read_local(|tables| due_rollout(tables, &sight));
        let Some(kind) = due.unwrap() else {
            return;
        };
        let step = StepRollout {
            kind,
            silent: [].into(),
        };
        control.propose(step).await.unwrap();
    }
}

fn version(desired: &UpdateDesired) -> Option<&str> {
    let release = desired.release.as_ref();
    release.map(|release| release.version.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_reaches_the_streams_of_its_wave_and_no_others() {
    let control = Control::start().await;
    let leaf1: UpdateServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    let leaf2: UpdateServiceClient = control.agent(AgentKind::Core, "p1", "leaf2").await;
    let pixie: UpdateServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    for agent in [&leaf1, &leaf2, &pixie] {
        agent
            .report(runs("1.2.0", "nothing_wanted", ""))
            .await
            .unwrap();
    }
    let mut first = leaf1.desired(UpdateDesiredRequest {}).await.unwrap();
    let mut second = leaf2.desired(UpdateDesiredRequest {}).await.unwrap();
    let mut other = pixie.desired(UpdateDesiredRequest {}).await.unwrap();
    for stream in [&mut first, &mut second, &mut other] {
        assert_eq!(version(&next(stream).await), None);
    }
    control.propose(start()).await.unwrap();
    step(&control).await;
    assert_eq!(version(&next(&mut first).await), Some("1.3.0"));
    // A report without news is written to no log.
    let before = control.store.read_local(|tables| tables.revision());
    leaf2
        .report(runs("1.2.0", "nothing_wanted", ""))
        .await
        .unwrap();
    let after = control.store.read_local(|tables| tables.revision());
    assert_eq!(before.unwrap(), after.unwrap());
    leaf1
        .report(runs("1.3.0", "current", "1.3.0"))
        .await
        .unwrap();
    step(&control).await;
    assert_eq!(version(&next(&mut second).await), Some("1.3.0"));
    leaf2
        .report(runs("1.3.0", "current", "1.3.0"))
        .await
        .unwrap();
    step(&control).await;
    // It is complete: one that opens its stream now is told of the site's.
    let mut again = leaf1.desired(UpdateDesiredRequest {}).await.unwrap();
    assert_eq!(version(&next(&mut again).await), Some("1.3.0"));
    let mut again = pixie.desired(UpdateDesiredRequest {}).await.unwrap();
    assert_eq!(version(&next(&mut again).await), None, "of another kind");
    let programs = control.store.read_local(|tables| {
        let programs = tables.all::<AgentProgram>();
        programs
            .map(|program| format!("{} {}", program.agent, program.version))
            .collect::<Vec<_>>()
    });
    let expected = ["p1/leaf1 1.3.0", "p1/leaf2 1.3.0", "p1/pixie1 1.2.0"];
    assert_eq!(programs.unwrap(), expected);
    control.stop().await;
}
