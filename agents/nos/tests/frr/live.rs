//! Real daemons: what is rendered is read back, and deltas end where a fresh start does.

use agents_nos::frr::{BgpVrf, FrrConfig, FrrError, FrrObject, Observed, diff, parse, render};

use super::daemons::{Switch, is_available};
use super::random::configurations;
use super::sample::{join, leaf, machine, or_longer, port, tenant, vrf};

/// Brings a switch to a configuration and checks what every change must hold.
pub(crate) async fn reconcile(switch: &Switch, desired: &FrrConfig) -> Observed {
    let observed = switch.ready().await;
    let delta = diff(&observed, desired);
    let applied = switch.frr.apply(&observed, desired).await;
    let now = applied.unwrap_or_else(|e| {
        switch.show_words();
        panic!("{e:#?}: {delta:#?}")
    });
    assert_eq!(now.config, *desired, "what is read back is what was said");
    assert_eq!(now.foreign, observed.foreign, "foreign lines stay");
    assert!(diff(&now, desired).is_empty(), "again is nothing to do");
    now
}

#[tokio::test]
async fn a_leaf_is_read_back_and_taken_down_again() {
    if !is_available() {
        return;
    }
    let switch = Switch::start("leaf", &[]).await;
    switch.vtysh(
        "configure terminal\nip prefix-list MGMT seq 5 permit 192.0.2.0/24\nrouter bgp 4200000011\n\
         no bgp default ipv4-unicast\nneighbor 192.0.2.1 remote-as 65000\nneighbor 192.0.2.1 description by hand",
    );
    let before = switch.ready().await;
    assert!(before.foreign.iter().any(|f| f.line.contains("by hand")));
    let now = reconcile(&switch, &leaf()).await;
    // Without the operator's own lines, what FRR shows is the rendered text, line by line.
    let shown = switch.vtysh("show running-config");
    for line in render(&leaf()).lines().filter(|line| *line != "!") {
        let unspoken = line.contains("ebgp-requires-policy");
        assert!(
            unspoken || shown.lines().any(|l| l == line),
            "{line:?} in {shown}"
        );
    }
    assert_eq!(parse(&shown).config, now.config, "of both daemons together");
    let mut bare = FrrConfig::default();
    let mut default = leaf().bgp.remove(&BgpVrf::Default).unwrap();
    default.groups.clear();
    default.neighbours.clear();
    default.redistribute = agents_nos::frr::PerIp::default();
    bare.bgp.insert(BgpVrf::Default, default);
    reconcile(&switch, &bare).await;
    switch.frr.forget_vrf(vrf(27)).await.unwrap();
    let shown = switch.vtysh("show running-config");
    assert!(
        !shown.contains("Vrf27") && shown.contains("by hand"),
        "{shown}"
    );
}

#[tokio::test]
async fn random_deltas_end_where_a_fresh_start_does() {
    if !is_available() {
        return;
    }
    let switch = Switch::start("walk", &[]).await;
    for desired in configurations(25) {
        reconcile(&switch, &desired).await;
    }
    let last = configurations(25).pop().unwrap();
    let fresh = Switch::start("fresh", &[]).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), render(&last)).unwrap();
    let status = std::process::Command::new("vtysh")
        .args(["-N", &fresh.name, "-f"])
        .arg(file.path())
        .status();
    assert!(status.unwrap().success());
    let walked = switch.ready().await;
    assert_eq!(fresh.ready().await.config, walked.config);
}

#[tokio::test]
async fn an_operators_edit_and_a_crash_are_seen_and_healed() {
    if !is_available() {
        return;
    }
    let mut switch = Switch::start("drift", &[]).await;
    let desired = leaf();
    reconcile(&switch, &desired).await;
    for damage in [
        "ip prefix-list MM-in-27 permit any",
        "ipv6 prefix-list MM-in-28 seq 1 permit 2001:db8:bad::/48 ge 50",
        "no ip prefix-list MM-in-27 seq 5",
        "vrf Vrf27\nno vni 27",
        "no route-map MM-in-27 permit 10",
        "route-map MM-in-28 deny 20",
        "bgp as-path access-list MM-own seq 5 permit .*",
        "no router bgp 4200000011 vrf Vrf28",
        "router bgp 4200000011 vrf Vrf27\nno neighbor swp1 interface",
        "router bgp 4200000011 vrf Vrf27\nneighbor swp9 interface remote-as external",
        "router bgp 4200000011 vrf Vrf27\naddress-family ipv6\nno neighbor swp1 route-map MM-in-27 in",
        "router bgp 4200000011 vrf Vrf27\naddress-family ipv4\nneighbor swp1 maximum-prefix 5 warning-only",
        "router bgp 4200000011\nno neighbor swp32",
        "router bgp 4200000011\nbgp default ipv4-unicast",
        "router bgp 4200000011\nno bgp ebgp-requires-policy",
        "router bgp 4200000011\naddress-family l2vpn evpn\nno advertise-all-vni",
    ] {
        switch.vtysh(&format!("configure terminal\n{damage}"));
        let drift = switch.ready().await;
        assert!(!diff(&drift, &desired).is_empty(), "not seen: {damage}");
        let healed = switch.frr.apply(&drift, &desired).await;
        let healed = healed.unwrap_or_else(|e| panic!("{damage}: {e}"));
        assert_eq!(healed.config, desired, "{damage}");
    }
    switch.crash_bgpd().await;
    switch.restart_bgpd().await;
    let lost = switch.ready().await.config;
    assert!(lost.prefixes.is_empty(), "zebra's lists are not bgpd's");
    assert_eq!(lost.vrfs, desired.vrfs, "and VRFs are zebra's");
    reconcile(&switch, &desired).await;
}

#[tokio::test]
async fn a_refusal_names_its_object_and_stops_the_rest() {
    if !is_available() {
        return;
    }
    let switch = Switch::start("refuse", &[]).await;
    switch.vtysh("configure terminal\nvrf other\nvni 27");
    let observed = switch.ready().await;
    let refused = switch.frr.apply(&observed, &leaf()).await.unwrap_err();
    let FrrError::Refused {
        object,
        line,
        reason,
    } = &refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (object, line.as_str()),
        (&FrrObject::Vrf(vrf(27)), "vni 27")
    );
    assert!(reason.contains("already configured"), "{reason}");
    let after = switch.ready().await;
    assert!(after.config.bgp.is_empty(), "nothing after it was done");
    let mut dangling = FrrConfig::default();
    let mut tenant = tenant(27, &["swp1"]);
    dangling.bgp.append(&mut tenant.bgp);
    let refused = switch.frr.apply(&after, &dangling).await.unwrap_err();
    assert!(matches!(refused, FrrError::Invalid(_)), "{refused:?}");
}

#[tokio::test]
async fn a_port_moves_between_tenants_with_few_steps() {
    if !is_available() {
        return;
    }
    let switch = Switch::start("move", &[]).await;
    let mut desired = leaf();
    let observed = reconcile(&switch, &desired).await;
    let swp2 = port("swp2");
    let from = desired.bgp.get_mut(&BgpVrf::Tenant(vrf(27))).unwrap();
    from.neighbours.remove(&swp2);
    let to = desired.bgp.get_mut(&BgpVrf::Tenant(vrf(28))).unwrap();
    to.neighbours.insert(swp2.clone(), machine("in-28"));
    desired
        .prefixes
        .insert(or_longer("in-28", "198.51.100.7/32"));
    let delta = diff(&observed, &desired);
    let objects: Vec<_> = delta.blocks.iter().map(|b| b.object.to_string()).collect();
    assert_eq!(
        objects,
        [
            "neighbour swp2 in VRF Vrf27",
            "prefix list MM-in-28",
            "neighbour swp2 in VRF Vrf28"
        ]
    );
    reconcile(&switch, &desired).await;
}

#[tokio::test]
async fn a_switch_with_many_tenants_is_brought_up_in_several_runs() {
    if !is_available() {
        return;
    }
    let switch = Switch::start("many", &[]).await;
    let mut desired = leaf();
    for number in 100..200 {
        let mut one = tenant(number, &[&format!("swp{number}")]);
        let list = format!("in-{number}");
        for n in 0..15 {
            let prefix = format!("198.51.{n}.0/24");
            one.prefixes.insert(or_longer(&list, &prefix));
        }
        join(&mut desired, one);
    }
    reconcile(&switch, &desired).await;
    let sessions = switch.frr.sessions().await.unwrap();
    assert!(sessions.len() > 200, "{}", sessions.len());
    reconcile(&switch, &leaf()).await;
}

/// The configuration that a switch's model becomes: empty lists, numbers and expressions included.
#[tokio::test]
async fn the_configuration_of_a_model_is_read_back() {
    if !is_available() {
        return;
    }
    let switch = Switch::start("model", &[]).await;
    let text = include_str!("../plan/leaf.conf");
    let desired = parse(text).config;
    reconcile(&switch, &desired).await;
    let mut empty = desired.clone();
    empty.prefixes.clear();
    reconcile(&switch, &empty).await;
    reconcile(&switch, &desired).await;
    let mut bare = desired;
    bare.bgp.clear();
    bare.route_maps.clear();
    bare.closed.clear();
    reconcile(&switch, &bare).await;
}
