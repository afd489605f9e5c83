use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proto_wire_lldp::Mac;
use rtnetlink::packet_route::link::{
    InfoData, InfoKind, InfoVxlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};

use super::{Config, VXLAN_PORT};
use crate::place::PortPlace;
use crate::state::{PortObserved, SegmentObserved, SwitchState};
use crate::vni::Vni;

const BRIDGE_PREFIX: &str = "mmb";
const TUNNEL_PREFIX: &str = "mmx";

/// Name of a segment's bridge.
pub(super) fn bridge_name(vni: Vni) -> String {
    format!("{BRIDGE_PREFIX}{vni}")
}

/// Name of a segment's tunnel device.
pub(super) fn tunnel_name(vni: Vni) -> String {
    format!("{TUNNEL_PREFIX}{vni}")
}

/// The properties of a device that matter to a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) mac: Mac,
    pub(super) up: bool,
    pub(super) carrier: bool,
    pub(super) controller: Option<u32>,
    pub(super) mtu: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bridge,
    Vxlan {
        vni: u32,
        local: Option<IpAddr>,
        port: u16,
    },
    Other,
}

/// All devices of the namespace, and the remote ends that their tunnels flood to.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) links: Vec<Link>,
    /// By device index.
    remotes: BTreeMap<u32, BTreeSet<IpAddr>>,
}

impl View {
    pub(super) fn new(links: &[LinkMessage], entries: &[NeighbourMessage]) -> Self {
        let mut remotes: BTreeMap<u32, BTreeSet<IpAddr>> = BTreeMap::new();
        for (index, remote) in entries.iter().filter_map(flood_entry) {
            remotes.entry(index).or_default().insert(remote);
        }
        Self {
            links: links.iter().filter_map(link).collect(),
            remotes,
        }
    }

    pub(super) fn by_name(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|l| l.name == name)
    }

    fn by_index(&self, index: u32) -> Option<&Link> {
        self.links.iter().find(|l| l.index == index)
    }

    pub(super) fn state(&self, config: &Config) -> SwitchState {
        let ports = self.links.iter().filter(|l| config.is_port(&l.name));
        let segments = self.links.iter().filter_map(|l| Some((segment_of(l)?, l)));
        SwitchState {
            ports: ports.map(|l| (l.name.clone(), self.port(l))).collect(),
            segments: segments
                .map(|(vni, l)| (vni, self.segment(vni, l, config)))
                .collect(),
        }
    }

    fn port(&self, link: &Link) -> PortObserved {
        let place = match link.controller.map(|index| self.by_index(index)) {
            None => PortPlace::Isolated,
            Some(Some(bridge)) => segment_of(bridge).map_or_else(
                || PortPlace::Foreign(bridge.name.clone()),
                PortPlace::Segment,
            ),
            Some(None) => PortPlace::Foreign(String::new()),
        };
        PortObserved {
            mac: link.mac,
            admin_up: link.up,
            oper_up: link.carrier,
            place,
        }
    }

    fn segment(&self, vni: Vni, bridge: &Link, config: &Config) -> SegmentObserved {
        let tunnel = self.by_name(&tunnel_name(vni));
        let intact = bridge.up
            && tunnel.is_some_and(|t| {
                t.up && t.mtu == bridge.mtu
                    && t.controller == Some(bridge.index)
                    && tunnel_fits(t, vni, config)
            });
        let remotes = tunnel
            .and_then(|t| self.remotes.get(&t.index))
            .cloned()
            .unwrap_or_default();
        SegmentObserved {
            mtu: bridge.mtu,
            remotes,
            intact,
        }
    }
}

/// `true` if a tunnel device has the right settings among those that not every kernel can change
/// later.
pub(super) fn tunnel_fits(tunnel: &Link, vni: Vni, config: &Config) -> bool {
    tunnel.kind
        == Kind::Vxlan {
            vni: vni.get(),
            local: Some(config.vtep),
            port: VXLAN_PORT,
        }
}

fn segment_of(bridge: &Link) -> Option<Vni> {
    let number = bridge.name.strip_prefix(BRIDGE_PREFIX)?.parse().ok()?;
    let vni = Vni::new(number).ok()?;
    (bridge.kind == Kind::Bridge && bridge_name(vni) == bridge.name).then_some(vni)
}

fn link(message: &LinkMessage) -> Option<Link> {
    let flags = message.header.flags;
    let mut out = Link {
        index: message.header.index,
        name: String::new(),
        kind: Kind::Other,
        mac: Mac::default(),
        up: flags.contains(LinkFlags::Up),
        carrier: flags.contains(LinkFlags::Up | LinkFlags::LowerUp),
        controller: None,
        mtu: 0,
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => out.name.clone_from(name),
            // Tunnels over IP have an address of 4 or 16 bytes here. They are no ports of ours:
            // the zero MAC address stays, which no report shows.
            LinkAttribute::Address(address) => {
                if let Ok(mac) = Mac::try_from(address.as_slice()) {
                    out.mac = mac;
                }
            }
            LinkAttribute::Mtu(mtu) => out.mtu = *mtu,
            LinkAttribute::Controller(index) => out.controller = Some(*index),
            LinkAttribute::LinkInfo(infos) => out.kind = kind(infos),
            _ => {}
        }
    }
    (!out.name.is_empty()).then_some(out)
}

fn kind(infos: &[LinkInfo]) -> Kind {
    let mut out = Kind::Other;
    for info in infos {
        match info {
            LinkInfo::Kind(InfoKind::Bridge) => out = Kind::Bridge,
            LinkInfo::Data(InfoData::Vxlan(settings)) => out = vxlan(settings),
            _ => {}
        }
    }
    out
}

fn vxlan(settings: &[InfoVxlan]) -> Kind {
    let (mut vni, mut local, mut port) = (0, None, 0);
    for setting in settings {
        match setting {
            InfoVxlan::Id(id) => vni = *id,
            InfoVxlan::Local(address) => local = Some(IpAddr::from(*address)),
            InfoVxlan::Local6(address) => local = Some(IpAddr::from(*address)),
            InfoVxlan::Port(number) => port = *number,
            _ => {}
        }
    }
    Kind::Vxlan { vni, local, port }
}

/// The device and the remote of an entry that floods a tunnel device's broadcasts. `None` for other
/// entries.
fn flood_entry(message: &NeighbourMessage) -> Option<(u32, IpAddr)> {
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
