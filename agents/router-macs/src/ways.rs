//! The needs of the ways to other switches, as plain functions over what the kernel has.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage,
};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol};

use crate::DeviceNames;

/// The mark of neighbours that the agent has put back (`NDA_PROTOCOL`). zebra replaces it with its
/// own when it takes the neighbour over.
pub(super) const OURS: RouteProtocol = RouteProtocol::Other(77);

/// The next hop of routes to another switch: the bridge of the L3 VNI, and the address of the
/// tunnel's end. Of IPv6 routes it is "::ffff:" and the address.
pub(super) type Way = (u32, IpAddr);

/// The way to a router MAC address in a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) tunnel: u32,
    pub(super) mac: Vec<u8>,
    pub(super) remote: IpAddr,
}

/// Router MAC addresses by way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Macs(BTreeMap<Way, Vec<u8>>);

impl Macs {
    /// Those of neighbours that zebra has learned.
    pub(super) fn read(neighbours: &[NeighbourMessage]) -> Self {
        let learned = neighbours
            .iter()
            .filter(|of| of.header.flags.contains(NeighbourFlags::ExtLearned));
        let macs = learned.filter_map(|of| Some((way(of)?, mac(of)?.to_vec())));
        Self(macs.collect())
    }

    /// Takes over what `seen` knows, and forgets the ways of other bridges: switches are few, and
    /// so are the ways of a bridge.
    pub(super) fn learn(&mut self, seen: &Self, bridges: &BTreeMap<u32, u32>) {
        self.0.extend(seen.0.clone());
        self.0.retain(|(bridge, _), _| bridges.contains_key(bridge));
    }

    pub(super) fn insert(&mut self, way: Way, mac: Vec<u8>) {
        self.0.insert(way, mac);
    }

    pub(super) fn has(&self, way: &Way) -> bool {
        self.0.contains_key(way)
    }

    /// The MAC address of the switch at the end of a way: as it was known there, as the routes of
    /// the other IP version know it, or as another VRF does.
    pub(super) fn guess(&self, (bridge, end): &Way) -> Option<&[u8]> {
        let is_end = |other: &IpAddr| other.to_canonical() == end.to_canonical();
        let mut same = self.0.iter().filter(|((_, other), _)| is_end(other));
        let exact = self.0.get(&(*bridge, *end));
        let of_bridge = || same.clone().find(|((other, _), _)| other == bridge);
        let found = exact.or_else(|| of_bridge().map(|(_, mac)| mac));
        let found = found.or_else(|| same.next().map(|(_, mac)| mac));
        found.map(Vec::as_slice)
    }

    /// The entries that the ways need and the tunnels do not have.
    pub(super) fn missing(
        &self,
        tunnels: &BTreeMap<u32, u32>,
        entries: &[NeighbourMessage],
    ) -> BTreeSet<Entry> {
        let known: BTreeSet<(u32, &[u8])> = entries
            .iter()
            .filter(|entry| destination(entry).is_some())
            .filter_map(|entry| Some((entry.header.ifindex, mac(entry)?)))
            .collect();
        let needed = self.0.iter().filter_map(|((bridge, end), mac)| {
            let tunnel = *tunnels.get(bridge)?;
            (!known.contains(&(tunnel, mac.as_slice()))).then(|| Entry {
                tunnel,
                mac: mac.clone(),
                remote: end.to_canonical(),
            })
        });
        needed.collect()
    }
}

/// The tunnel of each bridge of an L3 VNI, by device index.
pub(super) fn tunnels(names: DeviceNames, links: &[LinkMessage]) -> BTreeMap<u32, u32> {
    let by_name: BTreeMap<&str, u32> = links
        .iter()
        .filter_map(|link| {
            let name = link.attributes.iter().find_map(|of| match of {
                LinkAttribute::IfName(name) => Some(name.as_str()),
                _ => None,
            })?;
            Some((name, link.header.index))
        })
        .collect();
    let pairs = by_name.iter().filter_map(|(name, bridge)| {
        let vni: u32 = name.strip_prefix(names.bridge)?.parse().ok()?;
        let tunnel = by_name.get(format!("{}{vni}", names.tunnel).as_str())?;
        // A number with leading zeros is somebody else's.
        (**name == format!("{}{vni}", names.bridge)).then_some((*bridge, *tunnel))
    });
    pairs.collect()
}

/// The ways that a route takes over the bridges.
pub(super) fn ways(route: &RouteMessage, bridges: &BTreeMap<u32, u32>) -> Vec<Way> {
    let several = route.attributes.iter().filter_map(|of| match of {
        RouteAttribute::MultiPath(hops) => Some(hops),
        _ => None,
    });
    let several = several.flatten();
    let several = several.filter_map(|hop| Some((hop.interface_index, end(&hop.attributes)?)));
    let device = route.attributes.iter().find_map(|of| match of {
        RouteAttribute::Oif(device) => Some(*device),
        _ => None,
    });
    let ways = several.chain(device.zip(end(&route.attributes)));
    ways.filter(|(device, _)| bridges.contains_key(device))
        .collect()
}

fn end(attributes: &[RouteAttribute]) -> Option<IpAddr> {
    attributes.iter().find_map(|of| match of {
        RouteAttribute::Gateway(RouteAddress::Inet(address)) => Some((*address).into()),
        RouteAttribute::Gateway(RouteAddress::Inet6(address)) => Some((*address).into()),
        _ => None,
    })
}

/// The neighbours of ours that no route needs any more.
pub(super) fn leftover<'a>(
    neighbours: &'a [NeighbourMessage],
    ways: &BTreeSet<Way>,
) -> impl Iterator<Item = &'a NeighbourMessage> {
    let is_ours = |of: &&NeighbourMessage| {
        let mark = NeighbourAttribute::Protocol(OURS);
        of.attributes.contains(&mark)
    };
    let ours = neighbours.iter().filter(is_ours);
    ours.filter(|of| way(of).is_some_and(|way| !ways.contains(&way)))
}

fn way(message: &NeighbourMessage) -> Option<Way> {
    Some((message.header.ifindex, destination(message)?))
}

fn mac(message: &NeighbourMessage) -> Option<&[u8]> {
    message.attributes.iter().find_map(|found| match found {
        NeighbourAttribute::LinkLayerAddress(mac) => Some(&mac[..]),
        _ => None,
    })
}

fn destination(message: &NeighbourMessage) -> Option<IpAddr> {
    message.attributes.iter().find_map(|found| match found {
        NeighbourAttribute::Destination(address) => ip(address),
        _ => None,
    })
}

fn ip(address: &NeighbourAddress) -> Option<IpAddr> {
    match address {
        NeighbourAddress::Inet(v4) => Some((*v4).into()),
        NeighbourAddress::Inet6(v6) => Some((*v6).into()),
        // Addresses in the bridge family come without a family of their own; the length tells.
        NeighbourAddress::Other(bytes) => match bytes.as_slice() {
            [a, b, c, d] => Some([*a, *b, *c, *d].into()),
            bytes => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rtnetlink::packet_route::route::RouteNextHop;

    use super::*;

    const BRIDGE: u32 = 7;
    const TUNNEL: u32 = 8;
    const MAC: [u8; 6] = [2, 0x4d, 10, 0, 0, 11];
    const END: &str = "10.0.0.11";
    const MAPPED: &str = "::ffff:10.0.0.11";

    fn message(device: u32, mac: [u8; 6], remote: Option<&str>) -> NeighbourMessage {
        let mut message = NeighbourMessage::default();
        message.header.ifindex = device;
        message.header.flags = NeighbourFlags::ExtLearned;
        let mac = NeighbourAttribute::LinkLayerAddress(mac.to_vec());
        message.attributes.push(mac);
        let remote = remote.map(|text| match text.parse().unwrap() {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        });
        let remote = remote.map(NeighbourAttribute::Destination);
        message.attributes.extend(remote);
        message
    }

    fn bridges() -> BTreeMap<u32, u32> {
        [(BRIDGE, TUNNEL)].into()
    }

    fn at(bridge: u32, end: &str) -> Way {
        (bridge, end.parse().unwrap())
    }

    fn gateway(end: &str) -> RouteAttribute {
        RouteAttribute::Gateway(match end.parse().unwrap() {
            IpAddr::V4(address) => RouteAddress::Inet(address),
            IpAddr::V6(address) => RouteAddress::Inet6(address),
        })
    }

    #[test]
    fn tunnels_are_found_by_their_names() {
        let names = DeviceNames {
            bridge: "mmr",
            tunnel: "mmx",
        };
        let devices = [
            "lo", "mmr27", "mmx27", "mmr28", "mmx29", "mmr027", "mmb5", "mmx5",
        ];
        let links = devices.iter().zip(1..).map(|(name, index)| {
            let mut link = LinkMessage::default();
            link.header.index = index;
            link.attributes = vec![LinkAttribute::IfName((*name).to_owned())];
            link
        });
        let links: Vec<_> = links.collect();
        assert_eq!(tunnels(names, &links), [(2, 3)].into());
    }

    #[test]
    fn a_neighbour_of_either_version_needs_the_entry() {
        let v4 = message(BRIDGE, MAC, Some(END));
        let v6 = message(BRIDGE, MAC, Some(MAPPED));
        let other = message(9, MAC, Some(END));
        let mut by_hand = v4.clone();
        by_hand.header.flags = NeighbourFlags::empty();
        let there = message(TUNNEL, MAC, Some(END));
        let in_the_bridge_alone = message(TUNNEL, MAC, None);
        let entry = Entry {
            tunnel: TUNNEL,
            mac: MAC.to_vec(),
            remote: END.parse().unwrap(),
        };
        for (neighbours, entries, expected) in [
            (vec![v4.clone(), v6.clone()], vec![], Some(&entry)),
            (vec![v6.clone()], vec![in_the_bridge_alone], Some(&entry)),
            (vec![v4], vec![there.clone()], None),
            (vec![v6], vec![there], None),
            (vec![other, by_hand], vec![], None),
            (vec![], vec![], None),
        ] {
            let found = Macs::read(&neighbours).missing(&bridges(), &entries);
            assert_eq!(found.iter().next(), expected, "{neighbours:?} {entries:?}");
        }
    }

    #[test]
    fn the_ways_are_those_of_routes_over_the_bridges() {
        let mut first = RouteNextHop::default();
        first.interface_index = BRIDGE;
        first.attributes = vec![gateway("10.0.0.12")];
        let mut second = RouteNextHop::default();
        second.interface_index = BRIDGE;
        second.attributes = vec![gateway("10.0.0.13")];
        let several = RouteAttribute::MultiPath(vec![first, second]);
        for (attributes, expected) in [
            (vec![gateway(END), RouteAttribute::Oif(BRIDGE)], vec![END]),
            (
                vec![RouteAttribute::Oif(BRIDGE), gateway(MAPPED)],
                vec![MAPPED],
            ),
            (vec![several], vec!["10.0.0.12", "10.0.0.13"]),
            (vec![gateway(END), RouteAttribute::Oif(9)], vec![]),
            (vec![RouteAttribute::Oif(BRIDGE)], vec![]),
        ] {
            let mut route = RouteMessage::default();
            route.attributes = attributes;
            let expected: Vec<Way> = expected.into_iter().map(|end| at(BRIDGE, end)).collect();
            assert_eq!(ways(&route, &bridges()), expected, "{route:?}");
        }
    }

    #[test]
    fn a_switch_is_known_by_its_other_neighbours() {
        let mut known = Macs::default();
        known.insert(at(BRIDGE, END), vec![1]);
        known.insert(at(BRIDGE, "::ffff:10.0.0.12"), vec![2]);
        known.insert(at(5, "10.0.0.12"), vec![3]);
        known.insert(at(5, "10.0.0.13"), vec![4]);
        for (way, expected) in [
            (at(BRIDGE, END), Some(1)),
            (at(BRIDGE, MAPPED), Some(1)),
            (at(BRIDGE, "10.0.0.12"), Some(2)),
            (at(BRIDGE, "10.0.0.13"), Some(4)),
            (at(BRIDGE, "10.0.0.14"), None),
        ] {
            let found = known.guess(&way);
            assert_eq!(
                found,
                expected.as_ref().map(std::slice::from_ref),
                "{way:?}"
            );
        }
    }

    #[test]
    fn what_is_known_of_a_bridge_goes_with_it() {
        let mut known = Macs::default();
        known.insert(at(5, END), vec![1]);
        known.insert(at(BRIDGE, END), vec![2]);
        let mut seen = Macs::default();
        seen.insert(at(BRIDGE, MAPPED), vec![3]);
        known.learn(&seen, &bridges());
        let rest = [(at(BRIDGE, END), vec![2]), (at(BRIDGE, MAPPED), vec![3])];
        assert_eq!(known, Macs(rest.into()));
    }

    #[test]
    fn a_neighbour_of_ours_goes_with_its_last_route() {
        let mut ours = message(BRIDGE, MAC, Some(END));
        ours.attributes.push(NeighbourAttribute::Protocol(OURS));
        let mut zebras = message(BRIDGE, MAC, Some(END));
        let protocol = NeighbourAttribute::Protocol(RouteProtocol::Zebra);
        zebras.attributes.push(protocol);
        for (neighbour, ways, expected) in [
            (&ours, vec![], 1),
            (&ours, vec![at(BRIDGE, MAPPED)], 1),
            (&ours, vec![at(BRIDGE, END)], 0),
            (&zebras, vec![], 0),
        ] {
            let neighbours = std::slice::from_ref(neighbour);
            let ways = BTreeSet::from_iter(ways);
            assert_eq!(
                leftover(neighbours, &ways).count(),
                expected,
                "{neighbour:?}"
            );
        }
    }
}
