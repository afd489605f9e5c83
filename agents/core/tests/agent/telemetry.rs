//! Sessions and counters that the switch tells go to control, and old ones do not stay.

use std::time::Duration;

use agents_core::config::BgpConfig;
use agents_kit::Agent;
use agents_nos::frr::announced::AnnouncedPrefix;
use agents_nos::frr::sessions::BgpSession;
use agents_nos::model::{PortName, RouteMatch, SwitchModel};
use agents_nos::{LinkCounters, Membership, Nos, PortTelemetry, Telemetry, Vni};
use proto_mesh::{NetworkFilter, PortFilter, PortIntent, PortPlace, SwitchDesired};

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
        ..BgpConfig::default()
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

/// A leaf whose port `swp2` is a firewall's, with one network.
fn with_firewall() -> SwitchDesired {
    let mut out = desired(1, 4000);
    let filter = PortFilter {
        asn: 4_210_000_001,
        prefixes_v4: vec!["10.1.0.5/32".into()],
        vnis: vec![27],
        ..PortFilter::default()
    };
    let port = PortIntent {
        name: "swp2".into(),
        vni: 27,
        admin_up: true,
        place: PortPlace::Underlay.into(),
        filter: Some(filter),
        ..PortIntent::default()
    };
    out.ports.retain(|of| of.name != port.name);
    out.ports.push(port);
    out
}

/// It announces more than its networks have reason for, and the port stays.
#[tokio::test]
async fn a_firewall_with_too_many_routes_loses_its_session() {
    let (site, control, switch) = (Site::new(), Control::default(), fresh());
    control.desired.send_replace(with_firewall());
    let (address, _server) = site.serve(&control);
    let mut config = config();
    config.bgp = Some(BgpConfig {
        asn: 4_200_000_011,
        ..BgpConfig::default()
    });
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let running = Running::start(agent, config, switch.clone());
    let report = heard(&control.report, |report| report.applied_generation == 1).await;
    assert_eq!(report.error, "");
    let seen = async || switch.observe().await.unwrap().model;
    let has_session = |model: &SwitchModel| {
        let bgp = model.bgp.as_ref().unwrap();
        bgp.underlay.contains_key("swp2")
    };
    assert!(has_session(&seen().await));
    assert!(seen().await.packet_filter.firewalls.contains_key("swp2"));

    let flood = BgpSession {
        family: "l2VpnEvpn".into(),
        received: 40_000,
        ..session(2, true)
    };
    switch.set_telemetry(Telemetry {
        sessions: vec![flood],
        ..Telemetry::default()
    });
    let report = heard(&control.report, |report| !report.error.is_empty()).await;
    let reason = "the firewall on port swp2 announced 40000 EVPN routes, and may announce 4160: its \
                  session is away for 60s";
    assert_eq!(report.error, reason);
    let after = seen().await;
    assert!(!has_session(&after));
    assert_eq!(after.ports["swp2"].membership, Membership::Underlay);
    assert_eq!(report.drift, []);
    running.stop().await;
}

/// Its routes of one network are refused, and its session stays for the others.
#[tokio::test]
async fn a_firewall_that_announces_a_foreign_prefix_is_refused_in_that_network() {
    let (site, control, switch) = (Site::new(), Control::default(), fresh());
    let mut wanted = with_firewall();
    let network = |vni: u32, prefix: &str| NetworkFilter {
        vni,
        prefixes: vec![prefix.into()],
        ..NetworkFilter::default()
    };
    let filter = wanted.ports.last_mut().unwrap().filter.as_mut().unwrap();
    filter.vnis = vec![27, 28];
    filter.networks = vec![network(27, "192.0.2.0/24"), network(28, "192.0.2.7/32")];
    control.desired.send_replace(wanted);
    let (address, _server) = site.serve(&control);
    let mut config = config();
    config.bgp = Some(BgpConfig {
        asn: 4_200_000_011,
        ..BgpConfig::default()
    });
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let running = Running::start(agent, config, switch.clone());
    let report = heard(&control.report, |report| report.applied_generation == 1).await;
    assert_eq!(report.error, "");
    let vni = |number: u32| Vni::new(number).unwrap();
    let announced = |number: u32, prefix: &str| AnnouncedPrefix {
        vnis: [vni(number)].into(),
        prefix: prefix.parse().unwrap(),
    };
    let swp2 = PortName::new("swp2").unwrap();
    let own = announced(27, "192.0.2.128/25");
    switch.set_announced(swp2.clone(), vec![own.clone()]);
    heard(&control.report, |report| report.applied_generation == 1).await;
    let stolen = announced(28, "192.0.2.8/32");
    switch.set_announced(swp2, vec![own, stolen]);
    let report = heard(&control.report, |report| !report.error.is_empty()).await;
    let reason = "the firewall on port swp2 announced 192.0.2.8/32 in VNI 28, where it may not: its \
                  routes of this VNI are refused for 60s";
    assert_eq!(report.error, reason);
    let model = switch.observe().await.unwrap().model;
    assert!(model.bgp.unwrap().underlay.contains_key("swp2"));
    let permits = |number: u32| {
        let maps = &model.policies.route_maps;
        let (_, map) = maps
            .iter()
            .find(|(name, _)| name.as_ref() == "MM-swp2-in")
            .unwrap();
        let mut rules = map.rules().values();
        rules.any(|rule| rule.permits && rule.matches.contains(&RouteMatch::EvpnOnly(vni(number))))
    };
    assert_eq!((permits(27), permits(28)), (true, false));
    running.stop().await;
}
