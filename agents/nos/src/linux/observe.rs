use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proto_wire_lldp::Mac;
use rtnetlink::packet_route::link::{
    InfoBridgePort, InfoData, InfoKind, InfoPortData, InfoVxlan, LinkAttribute, LinkFlags,
    LinkInfo, LinkMessage,
};
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};

use super::{Config, VXLAN_PORT};
use crate::model::{Membership, Mtu, Port, PortName, Segment, SwitchModel};
use crate::observation::{Observation, PortLink};
use crate::vni::Vni;

const BRIDGE_PREFIX: &str = "mmb";
const TUNNEL_PREFIX: &str = "mmx";
/// Name of the bridge of quarantined ports.
pub(super) const QUARANTINE: &str = "mmq";

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
    /// `true` for a port of a bridge that reaches no other port with this flag.
    pub(super) is_private: bool,
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

    pub(super) fn observation(&self, config: &Config) -> Observation {
        let ports = self.links.iter().filter(|l| config.is_port(&l.name));
        let ports = ports.filter_map(|l| Some((PortName::new(&l.name).ok()?, l)));
        let ports: Vec<_> = ports.collect();
        let segments = self.links.iter().filter_map(|l| Some((segment_of(l)?, l)));
        let model = SwitchModel {
            ports: ports
                .iter()
                .map(|(name, l)| (name.clone(), self.port(l)))
                .collect(),
            segments: segments
                .map(|(vni, l)| (vni, self.segment(vni, l, config)))
                .collect(),
            vtep: Some(config.vtep),
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
            None => Membership::Underlay,
            Some(Some(bridge)) if is_quarantine(bridge) => Membership::Quarantine,
            Some(Some(bridge)) => segment_of(bridge).map_or_else(
                || Membership::Foreign(bridge.name.clone()),
                |vni| Membership::Segment {
                    vni,
                    is_private: link.is_private,
                },
            ),
            Some(None) => Membership::Foreign(String::new()),
        };
        Port {
            admin_up: link.up,
            mtu: Mtu::new(link.mtu).ok(),
            membership,
        }
    }

    fn segment(&self, vni: Vni, bridge: &Link, config: &Config) -> Segment {
        let tunnel = self.by_name(&tunnel_name(vni));
        let fits = |t: &Link| {
            t.up && t.mtu == bridge.mtu
                && t.controller == Some(bridge.index)
                && tunnel_fits(t, vni, config)
        };
        let remotes = tunnel.and_then(|t| self.remotes.get(&t.index));
        let mtu = Mtu::new(bridge.mtu);
        Segment {
            remotes: remotes.cloned().unwrap_or_default(),
            is_intact: bridge.up && mtu.is_ok() && tunnel.is_some_and(fits),
            ..Segment::new(mtu.unwrap_or(Mtu::ETHERNET))
        }
    }
}

/// `true` for the bridge of quarantined ports. It stays down: a bridge that is down forwards
/// nothing and passes nothing to the switch but link-local frames, which LLDP needs.
pub(super) fn is_quarantine(link: &Link) -> bool {
    link.name == QUARANTINE && link.kind == Kind::Bridge && !link.up
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
        is_private: false,
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
            LinkAttribute::LinkInfo(infos) => {
                out.kind = kind(infos);
                out.is_private = is_private(infos);
            }
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

fn is_private(infos: &[LinkInfo]) -> bool {
    infos.iter().any(|info| {
        matches!(info, LinkInfo::PortData(InfoPortData::BridgePort(settings))
            if settings.contains(&InfoBridgePort::Isolated(true)))
    })
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
