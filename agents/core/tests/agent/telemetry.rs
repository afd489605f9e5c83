//! Sessions and counters that the switch tells go to control, and old ones do not stay.

use std::time::Duration;

use agents_core::config::BgpConfig;
use agents_kit::Agent;
use agents_nos::frr::sessions::BgpSession;
use agents_nos::model::PortName;
use agents_nos::{LinkCounters, Nos, PortTelemetry, Telemetry};
use proto_mesh::SwitchDesired;

use crate::fixture::{Control, Running, Site, config, desired, fresh, heard};

fn session(number: usize, is_up: bool) -> BgpSession {
    BgpSession {
        vrf: "default".into(),
        neighbour: format!("swp{number}"),
        family: "ipv4Unicast".into(),
        remote_as: 4_210_000_001,
        state: if is_up { "Established" } else { "Idle" }.into(),
        age: Duration::from_secs(60),
        received: 1,
        sent: 2,
        established: 1,
        dropped: 0,
        table: 3,
    }
}

#[tokio::test]
async fn control_hears_sessions_and_counters() {
    let (site, control, switch) = (Site::new(), Control::default(), fresh());
    control.desired.send_replace(desired(1, 4000));
    let (address, _server) = site.serve(&control);
    let counters = LinkCounters {
        tx_drops: 7,
        ..LinkCounters::default()
    };
    let counted = PortTelemetry {
        counters: Some(counters),
        optics: None,
    };
    let mut sessions: Vec<BgpSession> = (0..600).map(|number| session(number, true)).collect();
    sessions.push(session(999, false));
    switch.set_telemetry(Telemetry {
        sessions,
        ports: [(PortName::new("swp1").unwrap(), counted)].into(),
        ..Telemetry::default()
    });
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let running = Running::start(agent, config(), switch.clone());
    let report = heard(&control.report, |report| !report.sessions.is_empty()).await;
    assert_eq!((report.sessions.len(), report.sessions_omitted), (512, 89));
    assert_eq!(
        report.sessions[0].neighbour, "swp999",
        "that which is down first"
    );
    assert!(report.sessions[0].since_ms > 1_700_000_000_000);
    assert_eq!(report.evpn, None);
    let port = |name: &str| report.ports.iter().find(|port| port.name == name).unwrap();
    assert_eq!(port("swp1").counters.unwrap().tx_drops, 7);
    assert_eq!((port("swp2").counters, &port("swp1").optics), (None, &None));

    switch.set_telemetry(Telemetry::default());
    heard(&control.report, |report| report.sessions.is_empty()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_drain_reaches_bgp_and_is_reported() {
    let (site, control, switch) = (Site::new(), Control::default(), fresh());
    let (address, _server) = site.serve(&control);
    let mut config = config();
    config.bgp = Some(BgpConfig {
        asn: 4_200_000_011,
        spines: Vec::new(),
        underlay: Vec::new(),
        vtysh: None,
    });
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let running = Running::start(agent, config, switch.clone());
    for (generation, drained) in [(1, true), (2, false)] {
        control.desired.send_replace(SwitchDesired {
            drained,
            ..desired(generation, 4000)
        });
        let applied = |report: &proto_mesh::SwitchReport| report.applied_generation == generation;
        let report = heard(&control.report, applied).await;
        assert_eq!((report.draining, report.error.as_str()), (drained, ""));
        let bgp = switch.observe().await.unwrap().model.bgp.unwrap();
        assert_eq!(bgp.is_draining, drained);
    }
    running.stop().await;
}
