//! Desired states of the fabric's switches.

use agents_nos::model::{
    AsPathList, Bgp, BgpNeighbour, Gateway, Mtu, PolicyName, Port, PortName, PrefixList,
    PrefixListId, PrefixRule, RouteMap, RouteMatch, RouteRule, Segment, Table, Vrf, VrfName,
};
use agents_nos::{Membership, SwitchModel, Vni};
use proto_types::Asn;

pub(crate) fn vni(number: u32) -> Vni {
    Vni::new(number).unwrap()
}

pub(crate) fn vrf(number: u32) -> VrfName {
    VrfName::new(&format!("Vrf{number}")).unwrap()
}

pub(crate) fn name(text: &str) -> PolicyName {
    PolicyName::new(text).unwrap()
}

pub(crate) fn port(text: &str) -> PortName {
    PortName::new(text).unwrap()
}

pub(crate) fn place(number: u32) -> Membership {
    Membership::Segment {
        vni: vni(number),
        is_private: false,
    }
}

/// A switch without tenants: its loopback, and links to others, over which it speaks EVPN.
pub(crate) fn underlay(number: u8, links: &[&str]) -> SwitchModel {
    let address = [10, 0, 0, number];
    let mut model = SwitchModel {
        vtep: Some(address.into()),
        ..SwitchModel::default()
    };
    let any = RouteMap::new([RouteRule {
        permits: true,
        matches: [].into(),
        is_last_resort: false,
        clears_communities: false,
    }]);
    let maps = &mut model.policies.route_maps;
    maps.insert(name("MM-any"), any.unwrap());
    let mut bgp = Bgp::new(Asn(4_200_000_000 + u32::from(number)), address.into()).unwrap();
    for link in links {
        enter(&mut model, link, Membership::Underlay, 9216);
        let mut neighbour = BgpNeighbour::filtered(name("MM-any"), name("MM-any"));
        neighbour.has_evpn = true;
        bgp.underlay.insert(port(link), neighbour);
    }
    model.bgp = Some(bgp);
    model
}

/// Puts a port into a place, up.
pub(crate) fn enter(model: &mut SwitchModel, of: &str, membership: Membership, mtu: u32) {
    let made = Port {
        admin_up: true,
        mtu: Some(Mtu::new(mtu).unwrap()),
        membership,
    };
    model.ports.insert(port(of), made);
}

/// Adds a tenant: its VRF with BGP, and a segment with a gateway.
pub(crate) fn tenant(model: &mut SwitchModel, number: u32, segment: u32, gateway: &[&str]) {
    let table = Table::new(1000 + number).unwrap();
    model.vrfs.insert(vrf(number), Vrf::new(vni(number), table));
    model.is_l3mdev_first = true;
    let bgp = model.bgp.as_mut().unwrap();
    bgp.vrfs.entry(vrf(number)).or_default();
    let addresses = gateway.iter().map(|address| address.parse().unwrap());
    let mut made = Segment::new(Mtu::ETHERNET);
    made.gateway = Some(Gateway::new(vrf(number), addresses).unwrap());
    model.segments.insert(vni(segment), made);
}

/// Adds a machine of a tenant that speaks BGP on a port, with the prefix that it may announce.
pub(crate) fn machine(model: &mut SwitchModel, of: &str, number: u32, asn: u32, prefix: &str) {
    enter(model, of, Membership::Routed(vrf(number)), 9000);
    let text = |kind: &str| name(&format!("MM-{kind}-{number}"));
    let prefix: ipnet::IpNet = prefix.parse().unwrap();
    let rule = PrefixRule::new(prefix, prefix.max_prefix_len()).unwrap();
    let id = PrefixListId {
        is_v6: false,
        name: text("prefixes"),
    };
    let rules = [rule].into();
    let policies = &mut model.policies;
    policies
        .prefix_lists
        .insert(id.clone(), PrefixList { rules });
    let origins = AsPathList::new([Asn(asn)]).unwrap();
    policies.as_path_lists.insert(text("origins"), origins);
    let import = RouteMap::new([RouteRule {
        permits: true,
        matches: [RouteMatch::Prefix(id), RouteMatch::AsPath(text("origins"))].into(),
        is_last_resort: false,
        clears_communities: false,
    }]);
    policies.route_maps.insert(text("import"), import.unwrap());
    let bgp = model.bgp.as_mut().unwrap();
    let of_vrf = bgp.vrfs.get_mut(&vrf(number)).unwrap();
    let neighbour = BgpNeighbour::filtered(text("import"), name("MM-any"));
    of_vrf.insert(port(of), neighbour);
}
