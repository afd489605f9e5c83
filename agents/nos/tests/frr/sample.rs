//! A leaf with two tenants, as the reference's rendered configurations have it.

use std::num::NonZeroU32;

use agents_nos::Vni;
use agents_nos::frr::{
    Action, AsPathKey, AsPathRegex, AsPathRule, Asn, BgpInstance, BgpVrf, Description, FrrConfig,
    InterfaceName, Neighbour, ObjectName, PeerGroup, PeerSettings, PrefixEntry, PrefixRule,
    Redistribute, Remote, RemoteAs, RouteMapEntry, RouteMapKey, Timers, VrfName,
};

pub(crate) fn name(short: &str) -> ObjectName {
    ObjectName::new(&format!("MM-{short}")).unwrap()
}

pub(crate) fn port(name: &str) -> InterfaceName {
    InterfaceName::new(name).unwrap()
}

pub(crate) fn asn(number: u32) -> Asn {
    Asn(NonZeroU32::new(number).unwrap())
}

pub(crate) fn vrf(number: u32) -> VrfName {
    VrfName::numbered(NonZeroU32::new(number).unwrap())
}

pub(crate) fn or_longer(list: &str, prefix: &str) -> PrefixEntry {
    PrefixEntry {
        list: name(list),
        rule: PrefixRule::or_longer(prefix.parse().unwrap()),
    }
}

/// A route-map that permits what the prefix lists of its name permit.
pub(crate) fn filter(config: &mut FrrConfig, map: &str) {
    let entry = |sequence| RouteMapKey {
        map: name(map),
        sequence,
    };
    let mut ipv4 = RouteMapEntry::new(Action::Permit);
    ipv4.match_ipv4 = Some(name(map));
    let mut ipv6 = RouteMapEntry::new(Action::Permit);
    ipv6.match_ipv6 = Some(name(map));
    config.route_maps.insert(entry(10), ipv4);
    config.route_maps.insert(entry(20), ipv6);
}

/// A machine of a tenant: external, filtered, with a limit.
pub(crate) fn machine(map: &str) -> Neighbour {
    let mut settings = PeerSettings::default();
    for family in [&mut settings.families.ipv4, &mut settings.families.ipv6] {
        family.activate = true;
        family.maximum_prefix = Some(4096);
        family.route_map_in = Some(name(map));
    }
    Neighbour {
        remote: Remote::As(RemoteAs::External),
        settings,
    }
}

pub(crate) fn tenant(vni: u32, ports: &[&str]) -> FrrConfig {
    let mut config = FrrConfig::default();
    let map = format!("in-{vni}");
    config.vrfs.insert(vrf(vni), Vni::new(vni).unwrap());
    let mut instance = BgpInstance::new(asn(4_200_000_011));
    instance.router_id = Some([10, 0, 0, 11].into());
    instance.redistribute.ipv4 = Redistribute::Connected;
    instance.redistribute.ipv6 = Redistribute::Connected;
    instance.advertise.ipv4 = true;
    instance.advertise.ipv6 = true;
    for name in ports {
        instance.neighbours.insert(port(name), machine(&map));
    }
    config.bgp.insert(BgpVrf::Tenant(vrf(vni)), instance);
    filter(&mut config, &map);
    config.prefixes.insert(or_longer(&map, "10.0.0.0/22"));
    config.prefixes.insert(or_longer(&map, "2001:db8::/56"));
    config
}

fn underlay() -> FrrConfig {
    let mut config = FrrConfig {
        router_id: Some([10, 0, 0, 11].into()),
        has_zebra_settings: true,
        ..FrrConfig::default()
    };
    let mut instance = BgpInstance::new(asn(4_200_000_011));
    instance.router_id = config.router_id;
    instance.multipath_relax = true;
    instance.redistribute.ipv4 = Redistribute::Filtered(name("loopback"));
    instance.advertise_all_vni = true;
    let mut fabric = PeerGroup {
        remote_as: Some(RemoteAs::External),
        settings: PeerSettings::default(),
    };
    fabric.settings.timers = Timers::new(2, 8);
    let ipv4 = &mut fabric.settings.families.ipv4;
    ipv4.allowas_in = Some(2);
    ipv4.route_map_in = Some(name("fabric"));
    ipv4.route_map_out = Some(name("own"));
    ipv4.activate = true;
    fabric.settings.families.evpn.activate = true;
    instance.groups.insert(name("FABRIC"), fabric);
    for uplink in ["swp31", "swp32"] {
        let settings = PeerSettings {
            description: Description::new("spine of rack 1").ok(),
            ..PeerSettings::default()
        };
        let neighbour = Neighbour {
            remote: Remote::Group(name("FABRIC")),
            settings,
        };
        instance.neighbours.insert(port(uplink), neighbour);
    }
    config.bgp.insert(BgpVrf::Default, instance);
    config
}

fn underlay_filters(config: &mut FrrConfig) {
    let key = |map, sequence| RouteMapKey {
        map: name(map),
        sequence,
    };
    let mut loopback = RouteMapEntry::new(Action::Permit);
    loopback.match_interface = Some(port("lo"));
    config.route_maps.insert(key("loopback", 10), loopback);
    let mut fabric = RouteMapEntry::new(Action::Permit);
    fabric.local_preference = Some(200);
    config.route_maps.insert(key("fabric", 10), fabric);
    let mut own = RouteMapEntry::new(Action::Permit);
    own.match_as_path = Some(name("own"));
    config.route_maps.insert(key("own", 10), own);
    let mut others = RouteMapEntry::new(Action::Deny);
    others.match_vni = Vni::new(77).ok();
    config.route_maps.insert(key("own", 20), others);
    let own = AsPathKey {
        list: name("own"),
        sequence: 5,
    };
    let rule = AsPathRule {
        action: Action::Permit,
        regex: AsPathRegex::new("^$").unwrap(),
    };
    config.as_paths.insert(own, rule);
}

/// Adds a tenant to a switch.
pub(crate) fn join(config: &mut FrrConfig, other: FrrConfig) {
    config.vrfs.extend(other.vrfs);
    config.bgp.extend(other.bgp);
    config.prefixes.extend(other.prefixes);
    config.as_paths.extend(other.as_paths);
    config.route_maps.extend(other.route_maps);
}

pub(crate) fn leaf() -> FrrConfig {
    let mut config = underlay();
    underlay_filters(&mut config);
    join(&mut config, tenant(27, &["swp1", "swp2"]));
    join(&mut config, tenant(28, &["swp3"]));
    config
}
