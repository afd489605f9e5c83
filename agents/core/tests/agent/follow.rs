//! The agent follows control.

use agents_kit::Agent;
use agents_nos::{Membership, Vni};

use crate::fixture::{Control, Running, Site, config, desired, fresh, heard, segment, until};

#[tokio::test]
async fn a_port_follows_control_and_control_hears_of_it() {
    let (site, control, switch) = (Site::new(), Control::default(), fresh());
    control.desired.send_replace(desired(5, 4000));
    let (address, _server) = site.serve(&control);
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let running = Running::start(agent, config(), switch.clone());

    let registered = heard(&control.registered, Option::is_some).await.unwrap();
    let names: Vec<_> = registered.ports.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["swp1", "swp2"], "an uplink is not registered");
    assert_eq!(
        (registered.rack.as_str(), registered.vtep_ip.as_str()),
        ("rack-1", "10.91.0.11")
    );
    until(&switch, "swp1", segment(4000)).await;
    let up1 = Membership::Segment {
        vni: Vni::new(4000).unwrap(),
        is_private: false,
    };
    until(&switch, "up1", up1).await;

    control.desired.send_replace(desired(6, 27));
    until(&switch, "swp1", segment(27)).await;
    let report = heard(&control.report, |r| r.applied_generation == 6).await;
    assert_eq!((report.applied_term, report.error.as_str()), (1, ""));
    assert_eq!(
        (report.ports[0].name.as_str(), report.ports[0].vni),
        ("swp1", 27)
    );

    control.desired.send_replace(desired(4, 99));
    control.desired.send_replace(desired(7, 0));
    until(&switch, "swp1", Membership::Quarantine).await;
    let moved_to_99 = switch
        .applied()
        .into_iter()
        .any(|d| format!("{d:?}").contains("99"));
    assert!(!moved_to_99, "an older order is not carried out");
    running.stop().await;
}

#[tokio::test]
async fn drift_is_repaired_and_a_fault_is_told_and_outlived() {
    let (site, control, switch) = (Site::new(), Control::default(), fresh());
    control.desired.send_replace(desired(1, 4000));
    let (address, _server) = site.serve(&control);
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let running = Running::start(agent, config(), switch.clone());
    until(&switch, "swp1", segment(4000)).await;

    switch.drift(|seen| {
        let port = seen.model.ports.get_mut("swp1").unwrap();
        port.membership = Membership::Foreign("br0".into());
    });
    until(&switch, "swp1", segment(4000)).await;

    switch.fail_next(2);
    control.desired.send_replace(desired(2, 27));
    let report = heard(&control.report, |r| !r.error.is_empty()).await;
    assert!(report.error.contains("fault injected"), "{}", report.error);
    assert_eq!(
        report.applied_generation, 1,
        "a failed order is not applied"
    );
    until(&switch, "swp1", segment(27)).await;
    heard(&control.report, |r| {
        r.applied_generation == 2 && r.error.is_empty()
    })
    .await;
    running.stop().await;
}
