//! Devices as the kernel describes them.

use std::net::IpAddr;

use proto_wire_lldp::Mac;
use rtnetlink::packet_route::link::{
    AfSpecInet, AfSpecInet6, AfSpecUnspec, BridgeBooleanOptionFlags, InfoBridge, InfoBridgePort,
    InfoData, InfoKind, InfoPortData, InfoVrf, InfoVxlan, LinkAttribute, LinkFlags, LinkInfo,
    LinkMessage,
};

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
    pub(super) port: BridgePort,
    /// `true` if the device is a bridge that learns the senders of link-local frames (LLDP). These pass
    /// by no rule of nftables, so that nothing would limit their number.
    pub(super) learns_link_local: bool,
    /// `true` if the device is a bridge that puts its ports into a VLAN, as the kernel does by default.
    /// zebra keeps one broadcast domain for a VLAN of all bridges, with a pointer to one bridge that it
    /// does not clear when the bridge goes (FRR 8.4.4, `zebra_evpn_acc_vl_new`): it crashes with the
    /// next segment. It looks at no port without a VLAN.
    pub(super) has_vlan: bool,
    /// `true` if IPv4 packets that the device receives are routed.
    pub(super) routes: bool,
    /// `true` if the device has IPv6 link-local addresses and takes no router advertisement, or
    /// the kernel has no IPv6.
    pub(super) is_unnumbered: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bridge,
    Vxlan {
        vni: u32,
        local: Option<IpAddr>,
        port: u16,
        /// `true` if senders are learned from what they send. Otherwise EVPN tells who is where.
        learns: bool,
    },
    Vrf {
        table: u32,
    },
    Other,
}

/// Flags of a port of a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BridgePort {
    /// `true` if the port reaches no other port with this flag.
    pub(super) is_private: bool,
    /// `true` if the bridge learns the senders behind the port.
    pub(super) learns: bool,
    /// `true` if the bridge answers ARP and ND for hosts that it knows, in place of the port.
    pub(super) suppresses: bool,
    /// `true` if the bridge sends to the port what goes to a host that it does not know.
    pub(super) floods: bool,
}

impl Link {
    /// Reads a message. `None` if it has no name.
    pub(super) fn read(message: &LinkMessage) -> Option<Self> {
        let flags = message.header.flags;
        let mut out = Self {
            index: message.header.index,
            name: String::new(),
            kind: Kind::Other,
            mac: Mac::default(),
            up: flags.contains(LinkFlags::Up),
            carrier: flags.contains(LinkFlags::Up | LinkFlags::LowerUp),
            controller: None,
            mtu: 0,
            port: BridgePort::default(),
            learns_link_local: false,
            has_vlan: false,
            routes: false,
            is_unnumbered: true,
        };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => out.name.clone_from(name),
                // Tunnels over IP have an address of 4 or 16 bytes here. They are no ports of
                // ours: the zero MAC address stays, which no report shows.
                LinkAttribute::Address(address) => {
                    if let Ok(mac) = Mac::try_from(address.as_slice()) {
                        out.mac = mac;
                    }
                }
                LinkAttribute::Mtu(mtu) => out.mtu = *mtu,
                LinkAttribute::Controller(index) => out.controller = Some(*index),
                LinkAttribute::LinkInfo(infos) => {
                    out.kind = kind(infos);
                    out.port = bridge_port(infos);
                    out.learns_link_local = learns_link_local(infos);
                    out.has_vlan = has_vlan(infos);
                }
                LinkAttribute::AfSpecUnspec(families) => out.read_families(families),
                _ => {}
            }
        }
        (!out.name.is_empty()).then_some(out)
    }

    fn read_families(&mut self, families: &[AfSpecUnspec]) {
        for family in families {
            match family {
                AfSpecUnspec::Inet(settings) => {
                    self.routes = settings.iter().any(|setting| {
                        matches!(setting, AfSpecInet::DevConf(conf) if conf.forwarding != 0)
                    });
                }
                AfSpecUnspec::Inet6(settings) => {
                    self.is_unnumbered = settings.iter().any(|setting| {
                        matches!(setting, AfSpecInet6::DevConf(conf)
                            if conf.disable_ipv6 == 0 && conf.accept_ra == 0)
                    });
                }
                _ => {}
            }
        }
    }

    /// `true` if a tunnel device has the right settings among those that not every kernel can
    /// change later.
    pub(super) fn is_tunnel(&self, of: u32, from: Option<IpAddr>) -> bool {
        matches!(self.kind, Kind::Vxlan { vni, local, port, .. }
            if vni == of && local == from && port == super::VXLAN_PORT)
    }

    /// `true` if EVPN tells who is behind a tunnel device. Nothing is flooded to it then but what goes
    /// to everybody or to a group: a frame to a host that nobody knows would go to every leaf, without
    /// a limit, and around forever if a machine returns it by its other port.
    pub(super) fn is_evpn_tunnel(&self) -> bool {
        let learns = matches!(self.kind, Kind::Vxlan { learns, .. } if learns);
        !learns && !self.port.learns && self.port.suppresses && !self.port.floods
    }

    /// `true` if a tunnel device learns who is behind it.
    pub(super) fn is_learning_tunnel(&self) -> bool {
        let learns = matches!(self.kind, Kind::Vxlan { learns, .. } if learns);
        learns && self.port.learns && !self.port.suppresses && self.port.floods
    }
}

fn kind(infos: &[LinkInfo]) -> Kind {
    let mut out = Kind::Other;
    for info in infos {
        match info {
            LinkInfo::Kind(InfoKind::Bridge) => out = Kind::Bridge,
            LinkInfo::Data(InfoData::Vxlan(settings)) => out = vxlan(settings),
            LinkInfo::Data(InfoData::Vrf(settings)) => {
                let table = settings.iter().find_map(|setting| match setting {
                    InfoVrf::TableId(table) => Some(*table),
                    _ => None,
                });
                out = table.map_or(Kind::Other, |table| Kind::Vrf { table });
            }
            _ => {}
        }
    }
    out
}

/// `false` for other devices, and on kernels that do not say it.
fn learns_link_local(infos: &[LinkInfo]) -> bool {
    bridge_settings(infos).any(|setting| {
        let no_learning = BridgeBooleanOptionFlags::NoLinkLocalLearn;
        matches!(setting, InfoBridge::MultiBoolOpt(options) if !options.value.contains(no_learning))
    })
}

/// `false` for other devices, and on kernels without VLANs of bridges.
fn has_vlan(infos: &[LinkInfo]) -> bool {
    bridge_settings(infos)
        .any(|setting| matches!(setting, InfoBridge::VlanDefaultPvid(vlan) if *vlan != 0))
}

/// Settings of a bridge. Empty for other devices.
fn bridge_settings(infos: &[LinkInfo]) -> impl Iterator<Item = &InfoBridge> {
    let settings = infos.iter().filter_map(|info| match info {
        LinkInfo::Data(InfoData::Bridge(settings)) => Some(settings),
        _ => None,
    });
    settings.flatten()
}

fn bridge_port(infos: &[LinkInfo]) -> BridgePort {
    let mut out = BridgePort::default();
    for info in infos {
        let LinkInfo::PortData(InfoPortData::BridgePort(settings)) = info else {
            continue;
        };
        for setting in settings {
            match setting {
                InfoBridgePort::Isolated(is_private) => out.is_private = *is_private,
                InfoBridgePort::Learning(learns) => out.learns = *learns,
                InfoBridgePort::NeighSupress(suppresses) => out.suppresses = *suppresses,
                InfoBridgePort::UnicastFlood(floods) => out.floods = *floods,
                _ => {}
            }
        }
    }
    out
}

fn vxlan(settings: &[InfoVxlan]) -> Kind {
    let (mut vni, mut local, mut port, mut learns) = (0, None, 0, false);
    for setting in settings {
        match setting {
            InfoVxlan::Id(id) => vni = *id,
            InfoVxlan::Local(address) => local = Some(IpAddr::from(*address)),
            InfoVxlan::Local6(address) => local = Some(IpAddr::from(*address)),
            InfoVxlan::Port(number) => port = *number,
            InfoVxlan::Learning(is_on) => learns = *is_on,
            _ => {}
        }
    }
    Kind::Vxlan {
        vni,
        local,
        port,
        learns,
    }
}
