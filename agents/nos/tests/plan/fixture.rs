//! Short ways to write states and steps.

use std::net::Ipv4Addr;

use agents_nos::model::{
    AsPathList, Bgp, BgpNeighbour, Gateway, Mtu, PolicyName, Port, PortName, PrefixList,
    PrefixListId, PrefixRule, RouteMap, RouteMatch, RouteRule, Segment, Table, Vlan, Vrf, VrfName,
    VxlanFilter,
};
use agents_nos::{Capability, Membership, Step, SwitchModel, Vni, interpret, plan};
use proto_types::Asn;

pub(crate) fn vni(number: u32) -> Vni {
    Vni::new(number).unwrap()
}

pub(crate) fn port(name: &str) -> PortName {
    PortName::new(name).unwrap()
}

pub(crate) fn vrf(name: &str) -> VrfName {
    VrfName::new(name).unwrap()
}

pub(crate) fn policy(name: &str) -> PolicyName {
    PolicyName::new(name).unwrap()
}

pub(crate) fn list_id(name: &str, is_v6: bool) -> PrefixListId {
    PrefixListId {
        is_v6,
        name: policy(name),
    }
}

pub(crate) fn rule(prefix: &str) -> PrefixRule {
    let prefix: ipnet::IpNet = prefix.parse().unwrap();
    PrefixRule::new(prefix, prefix.max_prefix_len()).unwrap()
}

pub(crate) fn segment_place(number: u32) -> Membership {
    Membership::Segment {
        vni: vni(number),
        is_private: false,
    }
}

pub(crate) fn routed(name: &str) -> Membership {
    Membership::Routed(vrf(name))
}

/// A route map that checks prefix and AS path by lists of these names.
pub(crate) fn import_map(prefixes: &str, paths: &str) -> RouteMap {
    let prefix = RouteMatch::Prefix(list_id(prefixes, false));
    RouteMap::new([RouteRule {
        permits: true,
        matches: [prefix, RouteMatch::AsPath(policy(paths))].into(),
        is_last_resort: false,
        clears_communities: true,
    }])
    .unwrap()
}

pub(crate) fn export_map() -> RouteMap {
    RouteMap::new([RouteRule {
        permits: true,
        matches: [].into(),
        is_last_resort: false,
        clears_communities: false,
    }])
    .unwrap()
}

/// An export without the prefixes of a list.
pub(crate) fn withholding_map(prefixes: &str) -> RouteMap {
    let denied = RouteRule {
        permits: false,
        matches: [RouteMatch::Prefix(list_id(prefixes, false))].into(),
        is_last_resort: false,
        clears_communities: false,
    };
    let rest = export_map().rules()[&10].clone();
    RouteMap::new([denied, rest]).unwrap()
}

pub(crate) fn paths(asn: u32) -> AsPathList {
    AsPathList::new([Asn(asn)]).unwrap()
}

pub(crate) fn neighbour() -> BgpNeighbour {
    BgpNeighbour::filtered(policy("MM-in"), policy("MM-out"))
}

pub(crate) fn gateway(of: &str, address: &str) -> Gateway {
    Gateway::new(vrf(of), [address.parse().unwrap()]).unwrap()
}

/// A state that is built up by chained calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Build(pub(crate) SwitchModel);

impl Build {
    pub(crate) fn port(mut self, name: &str, membership: Membership, admin_up: bool) -> Self {
        let made = Port {
            admin_up,
            mtu: None,
            membership,
        };
        self.0.ports.insert(port(name), made);
        self
    }

    pub(crate) fn segment(mut self, number: u32, remotes: &[u8]) -> Self {
        let mut made = Segment::new(Mtu::ETHERNET);
        made.remotes = remotes.iter().map(|r| [10, 0, 0, *r].into()).collect();
        self.0.segments.insert(vni(number), made);
        self
    }

    pub(crate) fn in_segment(mut self, number: u32, change: impl FnOnce(&mut Segment)) -> Self {
        change(self.0.segments.get_mut(&vni(number)).unwrap());
        self
    }

    pub(crate) fn vlan(self, number: u32, vlan: u16) -> Self {
        self.in_segment(number, |s| s.vlan = Some(Vlan::new(vlan).unwrap()))
    }

    pub(crate) fn gateway(self, number: u32, of: &str, address: &str) -> Self {
        self.in_segment(number, |s| s.gateway = Some(gateway(of, address)))
    }

    /// A VRF; the rules of the kernel are in order.
    pub(crate) fn vrf(mut self, name: &str, l3_vni: u32, table: u32) -> Self {
        let made = Vrf::new(vni(l3_vni), Table::new(table).unwrap());
        self.0.vrfs.insert(vrf(name), made);
        self.0.is_l3mdev_first = true;
        self
    }

    /// The lists and route maps of [`neighbour`], which permit this prefix.
    pub(crate) fn filters(mut self, prefix: &str) -> Self {
        let policies = &mut self.0.policies;
        let list = PrefixList {
            rules: [rule(prefix)].into(),
        };
        let id = list_id("MM-list", false);
        policies.prefix_lists.insert(id, list);
        let name = policy("MM-paths");
        policies.as_path_lists.insert(name, paths(4_210_000_001));
        let map = import_map("MM-list", "MM-paths");
        policies.route_maps.insert(policy("MM-in"), map);
        policies.route_maps.insert(policy("MM-out"), export_map());
        self
    }

    pub(crate) fn bgp(mut self, asn: u32) -> Self {
        let bgp = Bgp::new(Asn(asn), Ipv4Addr::new(10, 0, 0, 11)).unwrap();
        self.0.bgp = Some(bgp);
        self
    }

    pub(crate) fn bgp_vrf(mut self, name: &str, ports: &[&str]) -> Self {
        let ports = ports.iter().map(|name| (port(name), neighbour()));
        let bgp = self.0.bgp.as_mut().unwrap();
        bgp.vrfs.insert(vrf(name), ports.collect());
        self
    }

    /// A firewall on a port: its VXLAN filter, and a neighbour in the underlay.
    pub(crate) fn firewall(mut self, name: &str, vnis: &[u32]) -> Self {
        let vnis = vnis.iter().map(|number| vni(*number));
        let filter = VxlanFilter::new(vnis, ["10.1.0.5/32".parse().unwrap()]).unwrap();
        self.0.packet_filter.is_in_place = true;
        self.0.packet_filter.firewalls.insert(port(name), filter);
        if let Some(bgp) = &mut self.0.bgp {
            bgp.underlay.insert(port(name), neighbour());
        }
        self.port(name, Membership::Underlay, true)
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&mut SwitchModel)) -> Self {
        change(&mut self.0);
        self
    }
}

/// A tenant's VRF with `p1` in it, its neighbour and filters.
pub(crate) fn tenant() -> Build {
    Build::default()
        .port("p1", routed("Vrf27"), true)
        .vrf("Vrf27", 27, 1027)
        .filters("10.0.0.0/8")
        .bgp(4_200_000_011)
        .bgp_vrf("Vrf27", &["p1"])
}

/// A named plan.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) from: Build,
    pub(crate) to: Build,
    pub(crate) steps: &'static [&'static str],
}

/// A step in few words.
pub(crate) fn short(step: &Step) -> String {
    match step {
        Step::SetAdmin { port, up: true } => format!("{port} up"),
        Step::SetAdmin { port, up: false } => format!("{port} down"),
        Step::SetMtu { port, mtu } => format!("{port} mtu {mtu}"),
        Step::Quarantine { port } => format!("{port} leaves"),
        Step::Enter { port, place } => match place {
            Membership::Segment {
                vni,
                is_private: true,
            } => format!("{port} enters {vni} privately"),
            Membership::Segment { vni, .. } => format!("{port} enters {vni}"),
            Membership::Routed(vrf) => format!("{port} enters {vrf}"),
            other => format!("{port} enters {other:?}"),
        },
        Step::EnsureSegment { vni, .. } => format!("make {vni}"),
        Step::RemoveSegment { vni } => format!("remove {vni}"),
        Step::AddRemote { vni, remote } => format!("{vni} to {remote}"),
        Step::RemoveRemote { vni, remote } => format!("{vni} not to {remote}"),
        Step::SetGateway { vni, gateway: None } => format!("{vni} without gateway"),
        Step::SetGateway {
            vni,
            gateway: Some(gateway),
        } => format!("{vni} gateway in {}", gateway.vrf()),
        Step::PutL3mdevFirst => "l3mdev first".to_owned(),
        Step::EnsureVrf { name, .. } => format!("make {name}"),
        Step::RemoveVrf { name } => format!("remove {name}"),
        Step::SetVtep { address } => format!("loopback {address}"),
        Step::EnsurePacketFilter => "packet filter".to_owned(),
        Step::SetVxlanFilter { port, .. } => format!("{port} filters VXLAN"),
        Step::RemoveVxlanFilter { port } => format!("{port} filters no VXLAN"),
        other => short_bgp(other),
    }
}

fn short_bgp(step: &Step) -> String {
    let of = |vrf: &Option<VrfName>| {
        vrf.as_ref()
            .map_or_else(String::new, |v| format!(" in {v}"))
    };
    match step {
        Step::EnsureBgp { asn, .. } => format!("bgp {asn}"),
        Step::RemoveBgp => "no bgp".to_owned(),
        Step::EnsureBgpVrf { vrf } => format!("bgp of {vrf}"),
        Step::RemoveBgpVrf { vrf } => format!("no bgp of {vrf}"),
        Step::SetNeighbour { vrf, port, .. } => format!("neighbour {port}{}", of(vrf)),
        Step::RemoveNeighbour { vrf, port } => format!("no neighbour {port}{}", of(vrf)),
        Step::EnsurePrefixList { list } => format!("list {}", list.name),
        Step::AddPrefix { list, rule } => format!("{} permits {}", list.name, rule.prefix()),
        Step::RemovePrefix { list, rule } => format!("{} forgets {}", list.name, rule.prefix()),
        Step::RemovePrefixList { list } => format!("no list {}", list.name),
        Step::SetAsPathList { name, .. } => format!("paths {name}"),
        Step::RemoveAsPathList { name } => format!("no paths {name}"),
        Step::SetRouteMap { name, .. } => format!("map {name}"),
        Step::RemoveRouteMap { name } => format!("no map {name}"),
        other => format!("{other:?}"),
    }
}

/// Checks that plans have the steps of their case, and lead to the desired state.
pub(crate) fn check(cases: Vec<Case>) {
    for Case {
        name,
        from,
        to,
        steps,
    } in cases
    {
        let made = plan(&from.0, &to.0, Capability::ALL);
        let short: Vec<String> = made.steps.iter().map(short).collect();
        assert_eq!(short, steps, "{name}");
        assert_eq!(made.problems, [], "{name}");
        let mut state = from.0;
        for step in &made.steps {
            interpret(&mut state, step).unwrap();
        }
        assert_eq!(plan(&state, &to.0, Capability::ALL).steps, [], "{name}");
    }
}
