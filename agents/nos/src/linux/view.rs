//! All devices of the namespace, and the switch that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};

use super::Config;
use super::layer3::Layer3;
use super::link::{Kind, Link};
use super::names::{LOOPBACK, QUARANTINE, is_quarantine, segment_of, tunnel_name};
use crate::back_end::NosError;
use crate::model::{Membership, Mtu, Port, PortName, Segment, SwitchModel, Tunnel, VrfName};
use crate::observation::{Observation, PortLink};
use crate::vni::Vni;

/// All devices of the namespace, and the remote ends that their tunnels flood to.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) links: Vec<Link>,
    /// By device index.
    pub(super) remotes: BTreeMap<u32, BTreeSet<IpAddr>>,
    /// `None` on a switch without FRR, which has no layer 3.
    pub(super) layer3: Option<Layer3>,
}

impl View {
    pub(super) fn new(
        links: &[LinkMessage],
        entries: &[NeighbourMessage],
        layer3: Option<Layer3>,
    ) -> Self {
        let mut remotes: BTreeMap<u32, BTreeSet<IpAddr>> = BTreeMap::new();
        for (index, remote) in entries.iter().filter_map(flood_entry) {
            remotes.entry(index).or_default().insert(remote);
        }
        Self {
            links: links.iter().filter_map(Link::read).collect(),
            remotes,
            layer3,
        }
    }

    pub(super) fn by_name(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|l| l.name == name)
    }

    pub(super) fn find(&self, name: &str) -> Result<&Link, NosError> {
        let missing = || NosError::NoInterface(name.to_owned());
        self.by_name(name).ok_or_else(missing)
    }

    pub(super) fn by_index(&self, index: u32) -> Option<&Link> {
        self.links.iter().find(|l| l.index == index)
    }

    /// Address of the tunnels: the configured one, or the one that the agent has set where it owns
    /// the loopback.
    pub(super) fn vtep(&self, config: &Config) -> Option<IpAddr> {
        let Some(layer3) = &self.layer3 else {
            return Some(config.vtep);
        };
        let addresses = layer3.addresses(self.by_name(LOOPBACK)?.index);
        let ours = addresses.iter().filter(|address| address.is_ours);
        ours.map(|address| address.address.addr()).min()
    }

    /// The switch, without what a routing daemon keeps.
    pub(super) fn observation(&self, config: &Config) -> Observation {
        let ports = self.links.iter().filter(|l| config.is_port(&l.name));
        let ports = ports.filter_map(|l| Some((PortName::new(&l.name).ok()?, l)));
        let ports: Vec<_> = ports.collect();
        let segments = self.links.iter().filter_map(|l| Some((segment_of(l)?, l)));
        let vtep = self.vtep(config);
        let model = SwitchModel {
            ports: ports
                .iter()
                .map(|(name, l)| (name.clone(), self.port(l)))
                .collect(),
            segments: segments
                .map(|(vni, l)| (vni, self.segment(vni, l, vtep)))
                .collect(),
            vtep,
            is_l3mdev_first: self.layer3.as_ref().is_some_and(|l3| l3.is_l3mdev_first),
            ..SwitchModel::default()
        };
        let links = ports.into_iter().map(|(name, l)| {
            let link = PortLink {
                mac: l.mac,
                oper_up: l.carrier,
            };
            (name, link)
        });
        Observation {
            model,
            links: links.collect(),
        }
    }

    fn port(&self, link: &Link) -> Port {
        let membership = match link.controller.map(|index| self.by_index(index)) {
            // One that nobody has set up is in no place of ours, and has to enter.
            None if self.is_port_routed(link) => Membership::Underlay,
            None => Membership::Foreign(String::new()),
            Some(Some(master)) => self.place(link, master),
            Some(None) => Membership::Foreign(String::new()),
        };
        Port {
            admin_up: link.up,
            mtu: Mtu::new(link.mtu).ok(),
            membership,
        }
    }

    /// `true` if a port has the settings of a routed one. Without FRR no port has.
    fn is_port_routed(&self, link: &Link) -> bool {
        self.layer3.is_none() || (link.routes && link.is_unnumbered)
    }

    fn place(&self, link: &Link, master: &Link) -> Membership {
        if is_quarantine(master) {
            return Membership::Quarantine;
        }
        if let Some(vni) = segment_of(master) {
            let is_private = link.port.is_private;
            return Membership::Segment { vni, is_private };
        }
        let is_vrf = self.layer3.is_some() && matches!(master.kind, Kind::Vrf { .. });
        let is_vrf = is_vrf && self.is_port_routed(link);
        let vrf = VrfName::new(&master.name).ok().filter(|_| is_vrf);
        vrf.map_or_else(
            || Membership::Foreign(master.name.clone()),
            Membership::Routed,
        )
    }

    pub(super) fn segment(&self, vni: Vni, bridge: &Link, vtep: Option<IpAddr>) -> Segment {
        let tunnel = self.by_name(&tunnel_name(vni));
        let fits = |t: &Link| {
            t.up && t.mtu == bridge.mtu
                && t.controller == Some(bridge.index)
                && t.is_tunnel(vni.get(), vtep)
                && (self.layer3.is_none() || t.is_evpn_tunnel() || t.is_learning_tunnel())
        };
        let gateway = self.gateway(bridge);
        let mtu = Mtu::new(bridge.mtu);
        Segment {
            remotes: tunnel.map(|t| self.remotes(t)).unwrap_or_default(),
            is_intact: bridge.up
                && !bridge.learns_link_local
                && !bridge.has_vlan
                && mtu.is_ok()
                && tunnel.is_none_or(fits)
                && gateway.is_ok(),
            gateway: gateway.ok().flatten(),
            tunnel: match tunnel {
                None => Tunnel::Absent,
                Some(tunnel) if tunnel.port.is_private => Tunnel::Private,
                Some(_) => Tunnel::Open,
            },
            ..Segment::new(mtu.unwrap_or(Mtu::ETHERNET))
        }
    }

    /// Ends that a tunnel floods to by configuration. Where EVPN tells who is where, zebra adds
    /// entries that the kernel shows alike.
    fn remotes(&self, tunnel: &Link) -> BTreeSet<IpAddr> {
        let is_evpn = self.layer3.is_some() && tunnel.is_evpn_tunnel();
        let all = self.remotes.get(&tunnel.index).filter(|_| !is_evpn);
        all.cloned().unwrap_or_default()
    }

    /// The bridge of quarantined ports, under its name.
    pub(super) fn quarantine(&self) -> Option<&Link> {
        self.by_name(QUARANTINE)
    }
}

/// The device and the remote of an entry that floods a tunnel device's broadcasts. `None` for other
/// entries.
pub(super) fn flood_entry(message: &NeighbourMessage) -> Option<(u32, IpAddr)> {
    let mut zero = false;
    let mut remote = None;
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::LinkLayerAddress(mac) => zero = mac.iter().all(|b| *b == 0),
            NeighbourAttribute::Destination(address) => remote = ip(address),
            _ => {}
        }
    }
    remote.filter(|_| zero).map(|r| (message.header.ifindex, r))
}

fn ip(address: &NeighbourAddress) -> Option<IpAddr> {
    match address {
        NeighbourAddress::Inet(v4) => Some((*v4).into()),
        NeighbourAddress::Inet6(v6) => Some((*v6).into()),
        // Addresses in the bridge family come without a family of their own; the length tells.
        NeighbourAddress::Other(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(bytes.as_slice())
                .ok()
                .map(|b| Ipv4Addr::from(b).into()),
            16 => <[u8; 16]>::try_from(bytes.as_slice())
                .ok()
                .map(|b| Ipv6Addr::from(b).into()),
            _ => None,
        },
        _ => None,
    }
}
