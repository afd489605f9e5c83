//! The states that the suite moves a switch through. Some need capabilities.

use std::net::Ipv4Addr;

use agents_nos::model::{
    AsPathList, Bgp, BgpNeighbour, Gateway, Mtu, PolicyName, Port, PortName, PrefixList,
    PrefixListId, PrefixRule, RouteMap, RouteMatch, RouteRule, Segment, Table, Vlan, Vrf, VrfName,
};
use agents_nos::{Membership, SwitchModel, Vni};
use proto_types::Asn;

/// The ports that a factory gives each switch.
pub(crate) const PORTS: [&str; 3] = ["swp1", "swp2", "swp3"];

pub(crate) fn port(name: &str) -> PortName {
    PortName::new(name).unwrap()
}

pub(crate) fn vni(number: u32) -> Vni {
    Vni::new(number).unwrap()
}

pub(crate) fn segment(number: u32) -> Membership {
    Membership::Segment {
        vni: vni(number),
        is_private: false,
    }
}

pub(crate) fn private(number: u32) -> Membership {
    Membership::Segment {
        vni: vni(number),
        is_private: true,
    }
}

fn with_ports(places: [Membership; 3]) -> SwitchModel {
    let ports = PORTS.iter().zip(places).map(|(name, membership)| {
        let made = Port {
            admin_up: membership != Membership::Quarantine,
            mtu: None,
            membership,
        };
        (port(name), made)
    });
    SwitchModel {
        ports: ports.collect(),
        ..SwitchModel::default()
    }
}

fn with_segment(mut model: SwitchModel, number: u32, mtu: u32, remotes: &[u8]) -> SwitchModel {
    let mut made = Segment::new(Mtu::new(mtu).unwrap());
    made.remotes = remotes
        .iter()
        .map(|last| [10, 9, 0, *last].into())
        .collect();
    model.segments.insert(vni(number), made);
    model
}

/// A desired state with a name.
pub(crate) fn states() -> Vec<(&'static str, SwitchModel)> {
    let nobody = || Membership::Quarantine;
    let two = |one, other| {
        let model = with_ports([segment(one), segment(other), segment(other)]);
        let model = with_segment(model, one, 1500, &[2, 3]);
        with_segment(model, other, 9000, &[])
    };
    let mut jumbo = two(10, 11);
    for port in jumbo.ports.values_mut() {
        port.mtu = Some(Mtu::new(9000).unwrap());
    }
    let provisioning = with_ports([private(4000), private(4000), segment(4000)]);
    let mut vlans = two(10, 11);
    for (vlan, segment) in (100..).zip(vlans.segments.values_mut()) {
        segment.vlan = Some(Vlan::new(vlan).unwrap());
    }
    let mut underlay = with_ports([nobody(), nobody(), Membership::Underlay]);
    underlay.vtep = Some([10, 9, 0, 7].into());
    vec![
        ("nothing", SwitchModel::default()),
        ("two segments", two(10, 11)),
        ("the segments exchanged", two(11, 10)),
        ("jumbo frames", jumbo),
        ("provisioning", with_segment(provisioning, 4000, 1500, &[2])),
        (
            "all quarantined",
            with_ports([nobody(), nobody(), nobody()]),
        ),
        ("VLANs", vlans),
        ("a routed underlay", underlay),
        ("a tenant", tenant()),
        ("a drained tenant", drained()),
    ]
}

fn drained() -> SwitchModel {
    let mut model = tenant();
    model.bgp.as_mut().unwrap().is_draining = true;
    model
}

fn tenant() -> SwitchModel {
    let name = VrfName::new("Vrf27").unwrap();
    let place = Membership::Routed(name.clone());
    let model = with_ports([place.clone(), place, segment(10)]);
    let mut model = with_segment(model, 10, 1500, &[2]);
    let made = Vrf::new(vni(27), Table::new(1027).unwrap());
    model.vrfs.insert(name.clone(), made);
    let addresses = ["10.0.0.1/8", "169.254.1.1/32", "fe80::1/64"];
    let gateway = Gateway::new(name.clone(), addresses.map(|text| text.parse().unwrap()));
    model.segments.get_mut(&vni(10)).unwrap().gateway = Some(gateway.unwrap());
    let policy = |name: &str| PolicyName::new(name).unwrap();
    let list = PrefixListId {
        is_v6: false,
        name: policy("MM-list"),
    };
    let rule = PrefixRule::new("10.0.0.0/8".parse().unwrap(), 32).unwrap();
    let rules = PrefixList {
        rules: [rule].into(),
    };
    let policies = &mut model.policies;
    policies.prefix_lists.insert(list.clone(), rules);
    let origin = AsPathList::new([Asn(4_210_000_001)]).unwrap();
    policies.as_path_lists.insert(policy("MM-paths"), origin);
    let permit = |matches: Vec<RouteMatch>| {
        let matches = matches.into_iter().collect();
        let rule = RouteRule {
            permits: true,
            matches,
            is_last_resort: false,
            clears_communities: false,
        };
        RouteMap::new([rule]).unwrap()
    };
    let import = permit(vec![
        RouteMatch::Prefix(list),
        RouteMatch::AsPath(policy("MM-paths")),
    ]);
    policies.route_maps.insert(policy("MM-in"), import);
    policies.route_maps.insert(policy("MM-out"), permit(vec![]));
    let mut bgp = Bgp::new(Asn(4_200_000_011), Ipv4Addr::new(10, 0, 0, 11)).unwrap();
    let filtered = BgpNeighbour::filtered(policy("MM-in"), policy("MM-out"));
    bgp.vrfs.insert(name, [(port("swp1"), filtered)].into());
    model.bgp = Some(bgp);
    model
}
