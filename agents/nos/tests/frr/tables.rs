//! Reader, writer and plan, case by case; and a driver in front of programs that misbehave.

use std::time::Duration;

use agents_nos::frr::{
    AsPathRegex, BgpVrf, ConfigError, Description, Direction, Frr, FrrConfig, FrrError,
    InterfaceName, ObjectName, Observed, PrefixRule, Timers, VrfName, Vtysh, diff, parse, render,
    vnis,
};
use agents_nos::frr::{failures, sessions};

use super::sample::{filter, join, leaf, or_longer, port, tenant, vrf};

#[test]
fn a_leaf_is_written_as_frr_shows_it() {
    let text = render(&leaf());
    for line in [
        "ip router-id 10.0.0.11\n",
        "zebra zapi-packets 1\nzebra work-queue 0\nzebra nexthop-group keep 1\n",
        "vrf Vrf27\n vni 27\nexit-vrf\n",
        "router bgp 4200000011 vrf Vrf27\n bgp router-id 10.0.0.11\n",
        " neighbor swp31 interface peer-group MM-FABRIC\n",
        "  neighbor swp1 route-map MM-in-27 in\n  neighbor swp1 maximum-prefix 4096\n  \
         neighbor swp1 activate\n",
        "  advertise ipv4 unicast\n  advertise ipv6 unicast\n exit-address-family\nexit\n",
        "ipv6 prefix-list MM-in-27 seq 5 permit 2001:db8::/56 le 128\n",
        "bgp as-path access-list MM-own seq 5 permit ^$\n",
        "route-map MM-own deny 20\n match evpn vni 77\nexit\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn zebra_has_its_settings_with_all_of_them_alone() {
    let [packets, queue] = ["zebra zapi-packets 1\n", "zebra work-queue 0\n"];
    let nexthops = "zebra nexthop-group keep 1\n";
    for (said, has_settings) in [
        (format!("{packets}{queue}{nexthops}"), true),
        (format!("{packets}{queue}"), false),
        (format!("{packets}{nexthops}"), false),
        (nexthops.to_owned(), false),
        (format!("zebra zapi-packets 10\n{queue}{nexthops}"), false),
        (String::new(), false),
    ] {
        assert_eq!(
            parse(&said).config.has_zebra_settings,
            has_settings,
            "{said}"
        );
    }
}

#[test]
fn one_meaning_of_a_prefix_rule_has_one_spelling() {
    for (said, shown) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("10.0.0.0/8 le 8", "10.0.0.0/8"),
        ("10.0.0.0/8 ge 8", "10.0.0.0/8 le 32"),
        ("10.0.0.0/8 ge 9", "10.0.0.0/8 ge 9"),
        ("10.0.0.0/8 ge 9 le 32", "10.0.0.0/8 ge 9"),
        ("10.0.0.0/8 ge 9 le 9", "10.0.0.0/8 ge 9 le 9"),
        ("0.0.0.0/0 le 32", "any"),
        ("any", "any"),
    ] {
        let seen = parse(&format!("ip prefix-list MM-a seq 5 permit {said}\n"));
        let rules: Vec<_> = seen
            .config
            .prefixes
            .iter()
            .map(|e| e.rule.to_string())
            .collect();
        assert_eq!(rules, [shown], "{said}");
    }
    for foreign in [
        "10.0.0.0/8 ge 7",
        "10.0.0.0/33",
        "2001:db8::/32",
        "10.0.0.0/8 le 33",
        "",
    ] {
        let seen = parse(&format!("ip prefix-list MM-a seq 5 permit {foreign}\n"));
        assert!(
            seen.config.prefixes.is_empty() && seen.foreign.len() == 1,
            "{foreign}"
        );
    }
    let wide = "2001:db8::/32".parse().unwrap();
    assert!(PrefixRule::range(wide, 48, 40).is_none() && PrefixRule::range(wide, 31, 40).is_none());
}

#[test]
fn several_spellings_of_a_rule_all_go() {
    let text = "ip prefix-list MM-a seq 5 permit any\nip prefix-list MM-a seq 9 deny any\n\
                ip prefix-list MM-a seq 20 permit 0.0.0.0/0 le 32\n";
    let observed = parse(text);
    assert_eq!(observed.config.prefixes.len(), 1);
    assert_eq!(observed.foreign.len(), 1, "a list of ours only permits");
    let desired = FrrConfig {
        prefixes: [or_longer("a", "10.0.0.0/8")].into(),
        ..FrrConfig::default()
    };
    let lines: Vec<_> = diff(&observed, &desired)
        .blocks
        .into_iter()
        .flat_map(|b| b.lines)
        .collect();
    assert_eq!(
        lines,
        [
            "ip prefix-list MM-a seq 25 permit 10.0.0.0/8 le 32",
            "no ip prefix-list MM-a seq 5",
            "no ip prefix-list MM-a seq 20"
        ]
    );
}

#[test]
fn what_is_not_ours_is_foreign_with_its_context() {
    let text = "frr version 10.2\nfrr defaults datacenter\nhostname leaf1\nlog syslog\n\
        vrf mgmt\n ip route 0.0.0.0/0 192.0.2.1\nexit-vrf\n\
        router bgp 65001\n no bgp default ipv4-unicast\n neighbor 192.0.2.9 remote-as 65009\n \
        neighbor swp1 interface v6only remote-as 65002\n neighbor swp1 local-as 7\n !\n \
        address-family ipv4 vpn\n  neighbor swp1 activate\n exit-address-family\n \
        address-family ipv6 unicast\n  neighbor swp1 activate\n exit-address-family\nexit\n\
        router bgp 65001 vrf mgmt\n neighbor swp9 interface remote-as external\nexit\n\
        route-map OTHER permit 10\n set community 65535:0\nexit\nend\n";
    let seen = parse(text);
    let config = &seen.config;
    assert_eq!(config.bgp.len(), 1);
    let instance = &config.bgp[&BgpVrf::Default];
    assert!(!instance.ebgp_requires_policy, "the profile's default");
    let families = &instance.neighbours[&port("swp1")].settings.families;
    assert!(families.ipv6.activate && !families.ipv4.activate && config.route_maps.is_empty());
    let foreign: Vec<String> = seen
        .foreign
        .iter()
        .map(|f| {
            [&f.context[..], std::slice::from_ref(&f.line)]
                .concat()
                .join(" / ")
        })
        .collect();
    assert_eq!(
        foreign,
        [
            "hostname leaf1",
            "log syslog",
            "route-map OTHER permit 10",
            "router bgp 65001 vrf mgmt",
            "vrf mgmt",
            "route-map OTHER permit 10 / set community 65535:0",
            "router bgp 65001 / address-family ipv4 vpn",
            "router bgp 65001 / neighbor 192.0.2.9 remote-as 65009",
            "router bgp 65001 / neighbor swp1 local-as 7",
            "router bgp 65001 / address-family ipv4 vpn / neighbor swp1 activate",
            "router bgp 65001 vrf mgmt / neighbor swp9 interface remote-as external",
            "vrf mgmt / ip route 0.0.0.0/0 192.0.2.1",
        ]
    );
}

#[test]
fn words_that_frr_would_take_for_something_else_are_refused() {
    assert!(ObjectName::new("MM-in-27").is_ok() && InterfaceName::new("Ethernet1.100").is_ok());
    for name in ["MM-", "in-27", "MM-a b", "MM-a;b", "mm-x", "", "MM-é"] {
        assert!(ObjectName::new(name).is_err(), "{name}");
    }
    for name in [
        "",
        "1a",
        "fe80::1",
        "MM-a",
        "a b",
        "abcdefghijklmnop",
        "a\nb",
    ] {
        assert!(InterfaceName::new(name).is_err(), "{name}");
    }
    for name in [
        "Vrf",
        "Vrf0",
        "Vrf01",
        "vrf1",
        "Vrf1x",
        "Vrf4294967296",
        "VrfStorage",
    ] {
        assert!(VrfName::new(name).is_err(), "{name}");
    }
    for text in ["", " a", "a  b", "a\nb", "a|b", "?"] {
        assert!(Description::new(text).is_err(), "{text}");
    }
    assert!(AsPathRegex::new("^65000_.*$").is_ok());
    for text in ["", "a", "^1 $", "1|2", "1?"] {
        assert!(AsPathRegex::new(text).is_err(), "{text}");
    }
    assert!(Timers::new(2, 8).is_some() && Timers::new(0, 0).is_some());
    assert!(Timers::new(3, 8).is_none() && Timers::new(0, 2).is_none());
}

#[test]
fn contradictions_are_named() {
    assert_eq!(leaf().check(), Ok(()));
    let mut one = leaf();
    one.vrfs.insert(vrf(9), one.vrfs[&vrf(27)]);
    assert!(matches!(one.check(), Err(ConfigError::SharedVni { .. })));
    let mut one = leaf();
    one.route_maps
        .retain(|key, _| key.map.as_str() != "MM-in-28");
    let told = one.check().unwrap_err().to_string();
    assert!(told.contains("swp3") && told.contains("MM-in-28"), "{told}");
    let mut one = leaf();
    one.bgp.get_mut(&BgpVrf::Default).unwrap().groups.clear();
    assert!(matches!(one.check(), Err(ConfigError::NoGroup { .. })));
    let mut one = leaf();
    let tenant = BgpVrf::Tenant(vrf(27));
    one.bgp.get_mut(&tenant).unwrap().advertise_all_vni = true;
    assert_eq!(one.check(), Err(ConfigError::NotInDefault(tenant)));
    let mut one = leaf();
    one.router_id = Some([0, 0, 0, 0].into());
    assert_eq!(one.check(), Err(ConfigError::ZeroRouterId(BgpVrf::Default)));
}

#[test]
fn a_changed_filter_is_judged_again_for_those_who_keep_it() {
    let observed = Observed::from(leaf());
    let mut desired = leaf();
    desired
        .prefixes
        .insert(or_longer("in-27", "198.51.100.0/24"));
    let commands = |desired: &FrrConfig| {
        let refresh = diff(&observed, desired).refresh;
        refresh.iter().map(|r| r.command()).collect::<Vec<_>>()
    };
    let swp = |n| format!("clear bgp vrf Vrf27 swp{n} soft in");
    assert_eq!(commands(&desired), [swp(1), swp(2)]);
    let tenant27 = desired.bgp.get_mut(&BgpVrf::Tenant(vrf(27))).unwrap();
    tenant27.neighbours.remove(&port("swp1"));
    assert_eq!(commands(&desired), [swp(2)], "who leaves is not asked");
    let mut desired = leaf();
    desired.as_paths.clear();
    assert_eq!(
        commands(&desired),
        ["clear bgp peer-group MM-FABRIC soft out"]
    );
    assert_eq!(
        diff(&observed, &desired).refresh[0].direction,
        Direction::Out
    );
    let mut desired = leaf();
    join(&mut desired, tenant(29, &["swp9"]));
    filter(&mut desired, "unused");
    assert_eq!(commands(&desired), Vec::<String>::new());
}

#[test]
fn another_autonomous_system_takes_every_instance_down_first() {
    let mut desired = leaf();
    desired.bgp.get_mut(&BgpVrf::Default).unwrap().asn = super::sample::asn(65_000);
    let delta = diff(&Observed::from(leaf()), &desired);
    let removals: Vec<_> = delta
        .blocks
        .iter()
        .flat_map(|block| &block.lines)
        .filter(|line| line.starts_with("no router") || line.starts_with(" no vni"))
        .collect();
    assert_eq!(
        removals,
        [
            " no vni 27",
            " no vni 28",
            "no router bgp 4200000011 vrf Vrf28",
            "no router bgp 4200000011 vrf Vrf27",
            "no router bgp 4200000011"
        ]
    );
}

#[test]
fn json_of_other_versions_is_read() {
    let text = br#"{"default":{"vrfId":0,"ipv4Unicast":{"new":[1],"peers":{"swp1":{"state":
        "Established","peerUptimeMsec":1500,"pfxRcd":2,"connectionsDropped":1,"x":{}}}},
        "odd":{"peers":7}}}"#;
    let sessions = sessions::decode(text).unwrap();
    assert_eq!(sessions.len(), 1);
    assert!(sessions[0].is_established());
    assert_eq!((sessions[0].received, sessions[0].dropped), (2, 1));
    assert_eq!(sessions[0].age, Duration::from_millis(1500));
    assert!(sessions::decode(b" \n").unwrap().is_empty() && sessions::decode(b"[]").is_err());
    let many: Vec<String> = (0..12_000).map(|n| format!("\"p{n}\":{{}}")).collect();
    let many = format!("{{\"v\":{{\"f\":{{\"peers\":{{{}}}}}}}}}", many.join(","));
    assert_eq!(
        sessions::decode(many.as_bytes()).unwrap().len(),
        sessions::SESSIONS_MAX
    );
    let text =
        br#"{"default":{"ipv4Unicast":{"peers":{"swp1":{"lastResetDueTo":"Hold Timer Expired",
        "lastNotificationReason":"Hold Timer Expired/No Error","x":1},"swp2":{"lastResetDueTo":
        "Waiting for NHT"},"swp3":7}},"l2VpnEvpn":{"peers":{"swp9":{}}},"odd":{"peers":7}}}"#;
    let failures = failures::decode(text).unwrap();
    let [one] = &failures[..] else {
        panic!("a family with a peer that is none is passed over: {failures:?}");
    };
    assert_eq!((one.neighbour.as_str(), one.reason.as_str()), ("swp9", ""));
    assert!(failures::decode(b" \n").unwrap().is_empty());
    assert!(failures::decode(b"[]").is_err());
    let text = br#"{"numL2":3,"4000":{"vni":4000,"type":"L3","tenantVrf":"Vrf27",
        "vxlanIf":"vx","numRemoteVteps":"n/a"},"9":{"vni":0},"7":{"vni":7,"numRemoteVteps":2}}"#;
    let seen = vnis::decode(text).unwrap();
    let numbers: Vec<_> = seen
        .iter()
        .map(|v| (v.vni.get(), v.routed, v.remote_vteps))
        .collect();
    assert_eq!(numbers, [(7, false, Some(2)), (4000, true, None)]);
}

#[tokio::test]
async fn a_shell_that_misbehaves_is_an_error() {
    let patient = |timeout, script: &str| {
        Frr::new(Vtysh {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            timeout,
            output_max: 1000,
        })
    };
    let shell = |script: &str| patient(Duration::from_secs(60), script);
    let hangs = patient(Duration::from_millis(200), "exec tail -f /dev/null");
    let hangs = hangs.observe().await.unwrap_err();
    assert!(matches!(hangs, FrrError::Timeout(_)), "{hangs}");
    let floods = shell("exec yes").observe().await.unwrap_err();
    assert!(matches!(floods, FrrError::TooMuchOutput(1000)), "{floods}");
    let half = shell("echo ' zebra'").observe().await.unwrap_err();
    assert!(matches!(half, FrrError::NoDaemon("bgpd")), "{half}");
    let cut = shell("echo ' zebra bgpd'; echo router bgp 1")
        .observe()
        .await
        .unwrap_err();
    assert!(matches!(cut, FrrError::NoDaemon("bgpd")), "{cut}");
    let missing = shell("exec /nonexistent").sessions().await.unwrap_err();
    assert!(matches!(missing, FrrError::Command { .. }), "{missing}");
    let silent = shell("true");
    let lost = silent
        .apply(&Observed::default(), &leaf())
        .await
        .unwrap_err();
    assert!(
        matches!(lost, FrrError::NoDaemon(_)),
        "success proves nothing: {lost}"
    );
    let refused = shell("echo broken >&2; exit 1")
        .apply(&Observed::default(), &leaf())
        .await;
    assert!(
        matches!(refused, Err(FrrError::Command { .. })),
        "{refused:?}"
    );
}
