use proto_mesh::{Image, Install, MachineNetwork};

use super::*;
use crate::install::features::ImageFeatures;
use crate::install::item::ItemState;

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn network(kind: &str, vni: u32, ips: &[&str], prefixes: &[&str]) -> MachineNetwork {
    MachineNetwork {
        network: kind.into(),
        r#type: kind.into(),
        vni,
        ips: texts(ips),
        prefixes: texts(prefixes),
        asn: 4_210_000_009,
        ..MachineNetwork::default()
    }
}

fn order() -> Install {
    let mut internet = network("external", 104, &["203.0.113.7"], &["203.0.113.0/24"]);
    internet.destination_prefixes = texts(&["0.0.0.0/0", "::/0"]);
    internet.nat = true;
    Install {
        image: Some(Image {
            id: "firewall-1".into(),
            ..Image::default()
        }),
        uplinks: texts(&["50:54:00:00:00:01", "50:54:00:00:00:02"]),
        host_addresses: true,
        networks: vec![
            internet,
            network(
                "child",
                27,
                &["10.0.0.1"],
                &["10.0.0.0/22", "2001:db8::/64"],
            ),
            network("underlay", 0, &["10.255.0.9"], &["10.255.0.0/16"]),
        ],
        ..Install::default()
    }
}

fn image() -> ImageFeatures {
    ImageFeatures {
        networkd: true,
        frr: true,
        ..ImageFeatures::default()
    }
}

fn files(features: ImageFeatures) -> Result<Vec<SystemItem>, String> {
    let image = ImageNetwork {
        features,
        passwd: "",
        netplan_names: &[],
    };
    let plan = FirewallPlan::of(&order(), &[]).unwrap();
    render(&plan, &image).map_err(|error| error.to_string())
}

fn text(items: &[SystemItem], path: &str) -> String {
    let found = items.iter().find(|item| item.path == path);
    let Some(ItemState::File(_, bytes)) = found.map(|item| &item.state) else {
        panic!("no file {path}");
    };
    String::from_utf8(bytes.clone()).unwrap()
}

#[test]
fn each_network_has_a_vrf_a_bridge_and_a_tunnel() {
    let items = files(image()).unwrap();
    let of = |name: &str| text(&items, &format!("/etc/systemd/network/10-metalmesh-{name}"));
    assert!(of("lan0.link").contains("MTUBytes=9050"));
    assert_eq!(
        of("vrf27.netdev"),
        "[NetDev]\nName=vrf27\nKind=vrf\n\n[VRF]\nTable=1027\n"
    );
    assert_eq!(
        of("vlan27.netdev"),
        "[NetDev]\nName=vlan27\nKind=bridge\nMTUBytes=9000\nMACAddress=52:54:00:00:00:01\n\n\
         [Bridge]\nSTP=no\nMulticastSnooping=no\n"
    );
    assert!(of("vlan27.network").contains("VRF=vrf27\n"));
    assert!(of("vni104.netdev").contains("VNI=104\nLocal=10.255.0.9\nDestinationPort=4789\n"));
    assert!(of("vni104.network").contains("Bridge=vlan104\n"));
}

#[test]
fn a_network_has_the_ways_through_the_others() {
    let conf = text(&files(image()).unwrap(), "/etc/frr/frr.conf");
    for wanted in [
        "interface lo\n ip address 10.255.0.9/32\nexit\n",
        "interface vlan104\n ip address 203.0.113.7/32\nexit\n",
        "ip prefix-list MM-OWN seq 5 permit 10.255.0.9/32\n",
        "ipv6 prefix-list MM-OWN seq 5 deny any\n",
        "vrf vrf27\n vni 27\n ip route 203.0.113.0/24 vrf104 nexthop-vrf vrf104\n \
         ip route 0.0.0.0/0 vrf104 nexthop-vrf vrf104\n \
         ipv6 route ::/0 vrf104 nexthop-vrf vrf104\nexit-vrf\n",
        "vrf vrf104\n vni 104\n ip route 10.0.0.0/22 vrf27 nexthop-vrf vrf27\n",
        "ip prefix-list MM-TOLD-27 seq 5 permit 10.0.0.1/32\n\
         ip prefix-list MM-TOLD-27 seq 10 permit 203.0.113.0/24\n\
         ip prefix-list MM-TOLD-27 seq 15 permit 0.0.0.0/0\n",
        "ip prefix-list MM-TOLD-104 seq 5 permit 203.0.113.7/32\n",
        "ipv6 prefix-list MM-TOLD-104 seq 5 deny any\n",
        "router bgp 4210000009 vrf vrf27\n bgp router-id 10.255.0.9\n",
        "  neighbor LEAF route-map MM-EVPN-IN in\n",
        "route-map MM-EVPN-IN permit 10\nexit\n",
        "route-map MM-TOLD-27 permit 10\n match ip address prefix-list MM-TOLD-27\nexit\n",
    ] {
        assert!(conf.contains(wanted), "{wanted}is missing in:\n{conf}");
    }
    // The private network's own prefixes stay inside.
    let mut told = conf.lines().filter(|line| line.contains("MM-TOLD-104"));
    assert!(!told.any(|line| line.contains("10.0.0")), "{conf}");
    let external = conf.split("vrf vrf104\n bgp").nth(1).unwrap();
    assert!(!external.contains("redistribute"), "{conf}");
}

#[test]
fn routes_keep_away_until_the_agent_says_otherwise() {
    let conf = |order: &Install| {
        let image = ImageNetwork {
            features: image(),
            passwd: "",
            netplan_names: &[],
        };
        let plan = FirewallPlan::of(order, &[]).unwrap();
        text(&render(&plan, &image).unwrap(), "/etc/frr/frr.conf")
    };
    assert!(!conf(&order()).contains("prepend"));
    let with_agent = Install {
        firewall: true,
        ..order()
    };
    let conf = conf(&with_agent);
    let mut lines = conf
        .lines()
        .skip_while(|line| *line != "route-map MM-EVPN-OUT permit 10");
    let set = lines.nth(2).unwrap();
    let numbers = set.strip_prefix(" set as-path prepend ").unwrap();
    assert_eq!(numbers, ["4210000009"; 48].join(" "));
}

#[test]
fn forwarding_is_left_to_the_agent() {
    let items = files(image()).unwrap();
    let sysctl = text(&items, "/etc/sysctl.d/90-metalmesh-firewall.conf");
    assert!(!sysctl.contains("forward"), "{sysctl}");
}

#[test]
fn an_image_needs_both_programs() {
    for (features, missing) in [
        (
            ImageFeatures {
                frr: false,
                ..image()
            },
            "FRR",
        ),
        (
            ImageFeatures {
                networkd: false,
                ..image()
            },
            "networkd",
        ),
    ] {
        let error = files(features).unwrap_err();
        assert!(
            error.contains("firewall-1") && error.contains(missing),
            "{error}"
        );
    }
}

#[test]
fn a_wrong_order_is_refused_with_its_reason() {
    type Change = fn(&mut Install);
    let changes: [(Change, &str); 8] = [
        (|o| o.networks[2].ips = texts(&["2001:db8::9"]), "underlay"),
        (|o| o.networks[0].vni = 0, "VNI 0"),
        (|o| o.networks[0].vni = 1 << 24, "VNI 16777216"),
        (|o| o.networks[0].vni = 27, "two networks"),
        (|o| drop(o.networks.drain(..2)), "0 networks"),
        (|o| o.networks[1].asn = 1, "AS number"),
        (|o| o.networks[1].ips = texts(&["10.0.0.1\n!"]), "child"),
        (
            |o| o.networks[1].prefixes = texts(&["10.0.0.0/33"]),
            "child",
        ),
    ];
    for (change, expected) in changes {
        let mut bad = order();
        change(&mut bad);
        let error = FirewallPlan::of(&bad, &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_firewall_is_known_by_its_underlay() {
    assert!(FirewallPlan::is_for(&order()));
    let mut other = order();
    other.networks.pop();
    assert!(!FirewallPlan::is_for(&other));
    // Leaves without EVPN have no tunnels.
    let mut other = order();
    other.host_addresses = false;
    assert!(!FirewallPlan::is_for(&other));
}
