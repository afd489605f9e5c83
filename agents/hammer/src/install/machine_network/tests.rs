use proto_mesh::{Image, Install, MachineNetwork};
use proto_types::MacAddr;

use super::*;
use crate::install::item::ItemState;

const FEATURES: ImageFeatures = ImageFeatures {
    cloud_init: false,
    networkd: true,
    resolved: true,
    timesyncd: false,
    chrony: None,
    sudo: false,
    netplan: false,
    network_manager: false,
    ifupdown: false,
    frr: true,
    ignition: None,
};

fn order(mode: &str) -> Install {
    let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    Install {
        image: Some(Image {
            id: "debian-12".into(),
            ..Image::default()
        }),
        networking: mode.into(),
        mtu: 8950,
        uplinks: texts(&["52:54:00:00:00:01", "52:54:00:00:00:02"]),
        dns_servers: texts(&["9.9.9.9", "2620:fe::fe"]),
        networks: vec![MachineNetwork {
            network: "n".into(),
            ips: texts(&["10.1.0.5", "2001:db8::5"]),
            prefixes: texts(&["10.1.0.0/22", "2001:db8::/64"]),
            destination_prefixes: texts(&["0.0.0.0/0", "192.0.2.0/24"]),
            asn: 4_210_000_007,
            ..MachineNetwork::default()
        }],
        ..Install::default()
    }
}

fn render_with(install: &Install, features: ImageFeatures) -> Vec<SystemItem> {
    let names = ["50-cloud-init.yaml".to_string(), "README".to_string()];
    let image = ImageNetwork {
        features,
        passwd: "root:x:0:0::/:/bin/sh\nfrr:x:101:103::/:/bin/false\n",
        netplan_names: &names,
    };
    render(&NetworkPlan::of(install, &[]).unwrap(), &image).unwrap()
}

/// Content and mode of a file.
fn text(items: &[SystemItem], path: &str) -> (String, u32) {
    let found = items.iter().find(|item| item.path == path);
    let Some(ItemState::File(owner, bytes)) = found.map(|item| &item.state) else {
        panic!("no file {path}");
    };
    (String::from_utf8(bytes.clone()).unwrap(), owner.mode)
}

#[test]
fn a_routed_machine_has_its_addresses_in_frr_alone() {
    let items = render_with(&order("routed"), FEATURES);
    let (conf, mode) = text(&items, "/etc/frr/frr.conf");
    let want = "frr defaults traditional\nlog syslog informational\n!\n\
        no zebra nexthop kernel enable\n!\ninterface lo\n \
        ip address 10.1.0.5/32\n ipv6 address 2001:db8::5/128\nexit\n!\n\
        ip prefix-list MM-OWN seq 5 permit 10.1.0.5/32\n\
        ipv6 prefix-list MM-OWN seq 5 permit 2001:db8::5/128\n\
        bgp as-path access-list MM-SELF seq 5 permit ^$\n!\n\
        route-map MM-IN deny 10\n match ip address prefix-list MM-OWN\nexit\n\
        route-map MM-IN deny 20\n match ipv6 address prefix-list MM-OWN\nexit\n\
        route-map MM-IN permit 30\nexit\n!\n\
        route-map MM-OUT permit 10\n match as-path MM-SELF\n \
        match ip address prefix-list MM-OWN\nexit\n\
        route-map MM-OUT permit 20\n match as-path MM-SELF\n \
        match ipv6 address prefix-list MM-OWN\nexit\n!\n\
        router bgp 4210000007\n bgp router-id 10.239.128.135\n no bgp default ipv4-unicast\n \
        bgp bestpath as-path multipath-relax\n neighbor LEAF peer-group\n \
        neighbor LEAF remote-as external\n neighbor LEAF timers 2 8\n \
        neighbor LEAF timers connect 2\n \
        neighbor lan0 interface peer-group LEAF\n neighbor lan1 interface peer-group LEAF\n \
        !\n address-family ipv4 unicast\n  network 10.1.0.5/32\n  neighbor LEAF activate\n  \
        neighbor LEAF route-map MM-IN in\n  neighbor LEAF route-map MM-OUT out\n \
        exit-address-family\n !\n address-family ipv6 unicast\n  network 2001:db8::5/128\n  \
        neighbor LEAF activate\n  neighbor LEAF route-map MM-IN in\n  \
        neighbor LEAF route-map MM-OUT out\n exit-address-family\nexit\n!\n";
    assert_eq!((conf.as_str(), mode), (want, 0o640));
    let (sysctl, _) = text(&items, "/etc/sysctl.d/90-metalmesh-network.conf");
    assert!(sysctl.contains("net.ipv4.fib_multipath_hash_policy=1\n"));
    let frr = items.iter().find(|item| item.path == "/etc/frr/daemons");
    let ItemState::File(owner, _) = &frr.unwrap().state else {
        panic!("no file");
    };
    assert_eq!((owner.uid, owner.gid), (101, 103));
    let (lan1, _) = text(&items, "/etc/systemd/network/10-metalmesh-lan1.network");
    let want = "[Match]\nPermanentMACAddress=52:54:00:00:00:02\n\n[Link]\nMTUBytes=8950\n\
        RequiredForOnline=degraded\n\n[Network]\nDHCP=no\nIPv6AcceptRA=no\nLLDP=yes\n\
        EmitLLDP=yes\nLinkLocalAddressing=ipv6\n";
    assert_eq!(lan1, want);
    let resolved = text(&items, "/etc/systemd/resolved.conf.d/metalmesh.conf").0;
    assert_eq!(resolved, "[Resolve]\nDNS=9.9.9.9 2620:fe::fe\n");
}

#[test]
fn a_bridged_machine_has_a_bond_in_every_renderer() {
    let items = render_with(&order("bridged"), FEATURES);
    let bond = text(&items, "/etc/systemd/network/10-metalmesh-bond0.network").0;
    let want = "[Match]\nName=bond0\n\n[Link]\nMTUBytes=8950\n\n[Network]\nDHCP=no\n\
        IPv6AcceptRA=no\nLinkLocalAddressing=ipv6\nAddress=10.1.0.5/22\n\
        Address=2001:db8::5/64\nDNS=9.9.9.9\nDNS=2620:fe::fe\n\
        \n[Route]\nDestination=0.0.0.0/0\nGateway=169.254.1.1\nGatewayOnLink=yes\n\
        \n[Route]\nDestination=::/0\nGateway=fe80::1\nGatewayOnLink=yes\n\
        \n[Route]\nDestination=192.0.2.0/24\nGateway=169.254.1.1\nGatewayOnLink=yes\n";
    assert_eq!(bond, want);
    let netdev = "/etc/systemd/network/10-metalmesh-bond0.netdev";
    assert!(text(&items, netdev).0.contains("Mode=active-backup\n"));
    let lacp = Install {
        bond: "802.3ad".into(),
        ..order("bridged")
    };
    assert!(
        text(&render_with(&lacp, FEATURES), netdev)
            .0
            .contains("Mode=802.3ad\n")
    );
    assert!(!items.iter().any(|item| item.path.contains("frr")));

    let netplan = ImageFeatures {
        netplan: true,
        ..FEATURES
    };
    let items = render_with(&order("bridged"), netplan);
    let (yaml, mode) = text(&items, "/etc/netplan/10-metalmesh.yaml");
    assert_eq!(mode, 0o600);
    assert!(yaml.contains("      interfaces: [lan0, lan1]\n"), "{yaml}");
    let gone = |path: &str| {
        items
            .iter()
            .any(|i| i.path == path && i.state == ItemState::Absent)
    };
    assert!(gone("/etc/netplan/50-cloud-init.yaml") && !gone("/etc/netplan/README"));

    let manager = ImageFeatures {
        network_manager: true,
        ..FEATURES
    };
    let items = render_with(&order("bridged"), manager);
    let dir = "/etc/NetworkManager/system-connections/metalmesh";
    let (bond, mode) = text(&items, &format!("{dir}-bond0.nmconnection"));
    assert_eq!(mode, 0o600);
    let want = "[ipv6]\nmethod=manual\naddress1=2001:db8::5/64\nroute1=::/0,fe80::1\n\
        route1_options=onlink=true\ndns=2620:fe::fe;\n";
    assert!(bond.ends_with(want), "{bond}");
}

#[test]
fn addresses_of_a_routed_segment_are_hosts() {
    let order = Install {
        host_addresses: true,
        ..order("bridged")
    };
    let plan = NetworkPlan::of(&order, &[]).unwrap();
    let addresses: Vec<String> = plan.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.1.0.5/32", "2001:db8::5/128"]);
}

#[test]
fn what_an_image_or_an_order_lacks_is_named() {
    let fail = |install: &Install, features| {
        let names = [];
        let image = ImageNetwork {
            features,
            passwd: "",
            netplan_names: &names,
        };
        let plan = NetworkPlan::of(install, &[]);
        plan.and_then(|plan| render(&plan, &image))
            .unwrap_err()
            .to_string()
    };
    let no_frr = fail(
        &order("routed"),
        ImageFeatures {
            frr: false,
            ..FEATURES
        },
    );
    assert!(
        no_frr.contains("\"debian-12\"") && no_frr.contains("frr"),
        "{no_frr}"
    );
    let bare = ImageFeatures {
        networkd: false,
        ifupdown: true,
        ..FEATURES
    };
    let no_renderer = fail(&order("bridged"), bare);
    assert!(
        no_renderer.contains("\"debian-12\" has only ifupdown"),
        "{no_renderer}"
    );
    type Change = fn(&mut Install);
    let changes: [(Change, &str); 9] = [
        (|o| o.networking = "l3".into(), "networking \"l3\""),
        (|o| o.bond = "802.3ad\nmode=x".into(), "bond"),
        (|o| o.mtu = 68, "MTU is 68"),
        (|o| o.uplinks.clear(), "0 NICs"),
        (
            |o| o.uplinks[0] = "52:54:00:00:00:01\nName=x".into(),
            "uplinks",
        ),
        (|o| o.networks[0].asn = 0, "no AS number"),
        (
            |o| o.networks[0].ips = vec!["10.0.0.1\n!".into()],
            "network \"n\"",
        ),
        (
            |o| o.networks[0].ips = vec!["224.0.0.5".into()],
            "network \"n\"",
        ),
        (|o| o.dns_servers = vec!["a".into()], "dns_servers"),
    ];
    for (change, expected) in changes {
        let mut bad = order("routed");
        change(&mut bad);
        let error = fail(&bad, FEATURES);
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn values_that_are_missing_have_defaults() {
    let nics = ["52:54:00:00:00:09".parse::<MacAddr>().unwrap()];
    let install = Install {
        mtu: 0,
        uplinks: vec![],
        ..order("bridged")
    };
    let plan = NetworkPlan::of(&install, &nics).unwrap();
    assert_eq!((plan.mtu, plan.uplinks.as_slice()), (9000, nics.as_slice()));
    assert_eq!(Mode::parse("").unwrap(), Mode::Static);
}
