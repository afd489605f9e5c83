//! A switch that does not take everything.

use std::time::Duration;

use agents_kit::Agent;
use agents_nos::chaos::{Chaos, FaultRates};
use agents_nos::{SwitchObject, Vni};

use crate::fixture::{Control, Running, Site, config, desired, fresh, heard, segment, until};

#[tokio::test]
async fn an_object_that_fails_is_told_and_keeps_no_other_from_its_state() {
    let (site, control, switch) = (Site::new(), Control::default(), fresh());
    let chaos = Chaos::new(switch.clone(), 1, FaultRates::NONE);
    chaos.refuse(SwitchObject::Segment(Vni::new(27).unwrap()));
    let mut order = desired(1, 27);
    order.ports[1].vni = 4000;
    control.desired.send_replace(order);
    let (address, _server) = site.serve(&control);
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let running = Running::start(agent, config(), chaos);

    until(&switch, "swp2", segment(4000)).await;
    let report = heard(&control.report, |report| {
        report.problems.iter().any(|problem| problem.attempts >= 2)
    })
    .await;
    assert_eq!(report.applied_generation, 0);
    let told = report.problems.iter().map(|problem| {
        let reason = problem.reason.split(':').next().unwrap();
        (problem.object.as_str(), reason, problem.attempts > 0)
    });
    let want = [
        ("segment 27", "fault injected", true),
        ("port swp1", "waits for segment 27", false),
    ];
    assert_eq!(told.collect::<Vec<_>>(), want);
    assert!(report.error.starts_with("segment 27: fault injected"));
    assert!(report.error.ends_with("; port swp1 waits for segment 27"));
    assert_eq!((report.ports[1].vni, report.drift.len()), (4000, 0));

    // Another order for the port that waits.
    control.desired.send_replace(desired(2, 4000));
    until(&switch, "swp1", segment(4000)).await;
    heard(&control.report, |report| {
        report.applied_generation == 2 && report.error.is_empty()
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn an_agent_on_a_switch_with_faults_comes_to_the_desired_state() {
    let rates = FaultRates {
        fails: 20,
        unanswered: 20,
        ignored: 20,
        stale: 20,
        stalls: 5,
        stall: Duration::from_millis(20),
        lost: 0,
    };
    for seed in 0..4 {
        let (site, control, switch) = (Site::new(), Control::default(), fresh());
        control.desired.send_replace(desired(1, 27));
        let (address, _server) = site.serve(&control);
        let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
        let chaos = Chaos::new(switch.clone(), seed, rates);
        let running = Running::start(agent, config(), chaos);
        heard(&control.report, |report| report.applied_generation == 1).await;
        control.desired.send_replace(desired(2, 28));
        let report = heard(&control.report, |report| report.applied_generation == 2).await;
        assert_eq!(report.error, "", "seed {seed}");
        until(&switch, "swp1", segment(28)).await;
        running.stop().await;
    }
}
