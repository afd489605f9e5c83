//! Steps of segments.

use std::net::IpAddr;

use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{
    BridgeBooleanOptionFlags, InfoBridge, InfoBridgePort, InfoVxlan,
};
use rtnetlink::packet_route::neighbour::{NeighbourFlags, NeighbourMessage};
use rtnetlink::{LinkBridge, LinkBridgePort, LinkMessageBuilder, LinkVxlan};

use super::link::{Kind, Link};
use super::names::{GATEWAY_MAC, bridge_name, tunnel_name};
use super::neighbours::hear_hosts;
use super::requests::{EEXIST, ENOENT, change, let_route};
use super::routed::gateway_addresses;
use super::view::View;
use super::{Linux, VXLAN_PORT, failed};
use crate::back_end::NosError;
use crate::model::{Gateway, Tunnel};
use crate::vni::Vni;

impl Linux {
    pub(super) async fn ensure_segment(
        &self,
        view: &View,
        vni: Vni,
        mtu: u32,
        tunnel: Tunnel,
    ) -> Result<(), NosError> {
        let name = bridge_name(vni);
        if let Some(seen) = view.by_name(&name)
            && view.layer3.is_some()
            && !view.segment(vni, seen, view.vtep(&self.config)).is_intact
        {
            // The remains of a gateway belong to nobody.
            self.set_gateway(view, vni, None).await?;
        }
        let bridge = self.ensure_bridge(view, &name).await?;
        if tunnel == Tunnel::Absent {
            if let Some(link) = view.by_name(&tunnel_name(vni)) {
                self.delete(link).await?;
            }
            return self.bring_up(bridge, &name, mtu).await;
        }
        let device = self.ensure_tunnel(view, vni).await?;
        let is_private = tunnel == Tunnel::Private;
        if is_private {
            self.hide(vni, bridge, device).await?;
        }
        self.join(vni, &name, bridge, device, mtu).await?;
        if !is_private {
            self.set_private(device, vni, false).await?;
        }
        Ok(())
    }

    /// Puts a tunnel into its bridge as a private port. It is down until it is private: open for a
    /// moment, it would join the private ports of two switches.
    async fn hide(&self, vni: Vni, bridge: u32, device: u32) -> Result<(), NosError> {
        let name = tunnel_name(vni);
        let view = self.devices().await?;
        let is_hidden = |link: &Link| link.controller == Some(bridge) && link.port.is_private;
        if view.by_index(device).is_some_and(is_hidden) {
            return Ok(());
        }
        let down = change(device).down().build();
        self.set(down, || format!("bring {name} down")).await?;
        self.silence(device, &name).await?;
        let enter = change(device).controller(bridge).build();
        self.set(enter, || format!("put {name} into its bridge"))
            .await?;
        self.set_private(device, vni, true).await
    }

    async fn set_private(&self, device: u32, vni: Vni, is_on: bool) -> Result<(), NosError> {
        let flag = LinkBridgePort::new(device).append_info_data(InfoBridgePort::Isolated(is_on));
        let set = self.handle.link().set_port(flag.build()).execute().await;
        set.map_err(|e| failed(format!("set {} private={is_on}", tunnel_name(vni)), e))
    }

    /// Brings a device of a segment up, silent.
    async fn bring_up(&self, index: u32, name: &str, mtu: u32) -> Result<(), NosError> {
        // Before the device comes up: the kernel adds an address then.
        self.silence(index, name).await?;
        let up = change(index).mtu(mtu).up().build();
        self.set(up, || format!("bring {name} up with MTU {mtu}"))
            .await
    }

    /// Brings a tunnel and its bridge up, in this order.
    pub(super) async fn join(
        &self,
        vni: Vni,
        bridge_name: &str,
        bridge: u32,
        tunnel: u32,
        mtu: u32,
    ) -> Result<(), NosError> {
        let tunnel_name = tunnel_name(vni);
        for (index, name) in [(tunnel, tunnel_name.as_str()), (bridge, bridge_name)] {
            self.bring_up(index, name, mtu).await?;
        }
        let join = change(tunnel).controller(bridge).build();
        self.set(join, || format!("put {tunnel_name} into its bridge"))
            .await?;
        let view = self.devices().await?;
        let link = view.find(&tunnel_name)?;
        if self.config.frr.is_some() && !link.is_evpn_tunnel() && !link.is_learning_tunnel() {
            self.set_learning(link, false).await?;
        }
        Ok(())
    }

    /// Lets a tunnel learn who is behind it, or leaves that to EVPN, which also answers ARP and ND, and
    /// knows every host that has ever spoken.
    async fn set_learning(&self, tunnel: &Link, learns: bool) -> Result<(), NosError> {
        let name = &tunnel.name;
        if !matches!(tunnel.kind, Kind::Vxlan { learns: now, .. } if now == learns) {
            let settings = vec![InfoVxlan::Learning(learns)];
            let action = format!("set {name} learning={learns}");
            self.set_tunnel(tunnel, settings, &action).await?;
        }
        let flags = LinkBridgePort::new(tunnel.index)
            .learning(learns)
            .flood(learns)
            .neigh_suppress(!learns);
        let set = self.handle.link().set_port(flags.build()).execute().await;
        set.map_err(|e| failed(format!("set flags of {name}"), e))
    }

    pub(super) async fn ensure_bridge(&self, view: &View, name: &str) -> Result<u32, NosError> {
        if let Some(link) = view.by_name(name) {
            if link.kind != Kind::Bridge {
                return Err(NosError::NotOurs(name.to_owned()));
            }
            if link.learns_link_local || link.has_vlan {
                self.set_plain(link).await?;
            }
            return Ok(link.index);
        }
        // No forward delay: if an operator turned STP on, a port would drop a booting machine's
        // DHCP for 30 s. No multicast snooping: it trusts the queriers of tenants, and drops the
        // groups of hosts that have not answered them.
        let bridge = LinkMessageBuilder::<LinkBridge>::new(name)
            .append_info_data(InfoBridge::ForwardDelay(0))
            .append_info_data(InfoBridge::MulticastSnooping(false))
            .append_info_data(InfoBridge::VlanDefaultPvid(0))
            .set_boolean_opt(BridgeBooleanOptionFlags::NoLinkLocalLearn, true);
        self.add_link(bridge.build(), name).await
    }

    pub(super) async fn ensure_tunnel(&self, view: &View, vni: Vni) -> Result<u32, NosError> {
        let name = tunnel_name(vni);
        let vtep = view.vtep(&self.config);
        if let Some(link) = view.by_name(&name) {
            if !matches!(link.kind, Kind::Vxlan { .. }) {
                return Err(NosError::NotOurs(name));
            }
            if link.is_tunnel(vni.get(), vtep) {
                return Ok(link.index);
            }
            // No kernel can change VNI or port of an existing tunnel device, and older ones not
            // its source address either.
            self.delete(link).await?;
        }
        let tunnel = LinkVxlan::new(&name, vni.get())
            .port(VXLAN_PORT)
            .learning(self.config.frr.is_none());
        let tunnel = match vtep {
            Some(IpAddr::V4(address)) => tunnel.local(address),
            Some(IpAddr::V6(address)) => tunnel.local6(address),
            None => tunnel,
        };
        self.add_link(tunnel.build(), &name).await
    }

    /// Removes a bridge and the tunnel of its VNI.
    pub(super) async fn remove_bridge(
        &self,
        view: &View,
        vni: Vni,
        bridge: &str,
    ) -> Result<(), NosError> {
        for name in [tunnel_name(vni).as_str(), bridge] {
            if let Some(link) = view.by_name(name) {
                self.delete(link).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn add_remote(
        &self,
        view: &View,
        vni: Vni,
        remote: IpAddr,
    ) -> Result<(), NosError> {
        let tunnel = view.find(&tunnel_name(vni))?;
        if self.config.frr.is_some() && !tunnel.is_learning_tunnel() {
            self.set_learning(tunnel, true).await?;
        }
        let message = self.flood_entry(tunnel, remote);
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewNeighbour(message));
        // Append, not replace: the all-zeros address has one entry per remote end.
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND;
        let action = format!("add tunnel end {remote} to segment {vni}");
        self.send(request, &action, EEXIST).await
    }

    pub(super) async fn remove_remote(
        &self,
        view: &View,
        vni: Vni,
        remote: IpAddr,
    ) -> Result<(), NosError> {
        let tunnel = view.find(&tunnel_name(vni))?;
        let message = self.flood_entry(tunnel, remote);
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::DelNeighbour(message));
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK;
        let action = format!("cut tunnel end {remote} off segment {vni}");
        self.send(request, &action, ENOENT).await?;
        let left = view.remotes.get(&tunnel.index);
        let is_last = left.is_none_or(|left| left.iter().all(|other| *other == remote));
        if self.config.frr.is_some() && is_last && !tunnel.is_evpn_tunnel() {
            self.set_learning(tunnel, false).await?;
        }
        Ok(())
    }

    fn flood_entry(&self, tunnel: &Link, remote: IpAddr) -> NeighbourMessage {
        let mut request = self
            .handle
            .neighbours()
            .add_bridge(tunnel.index, &[0; 6])
            .destination(remote)
            .flags(NeighbourFlags::Own);
        request.message_mut().clone()
    }

    /// Makes a segment's bridge a gateway, or none. Addresses are on it only while it is in the
    /// VRF: in the default VRF they would lead into the underlay.
    pub(super) async fn set_gateway(
        &self,
        view: &View,
        vni: Vni,
        gateway: Option<&Gateway>,
    ) -> Result<(), NosError> {
        let bridge = view.find(&bridge_name(vni))?;
        let name = &bridge.name;
        let master = gateway.map(|gateway| view.find(gateway.vrf().as_ref()));
        let master = master.transpose()?.map(|vrf| vrf.index);
        let moves = bridge.controller != master;
        let addresses = view
            .layer3
            .as_ref()
            .map_or(&[][..], |l3| l3.addresses(bridge.index));
        let wanted = gateway.map(gateway_addresses).unwrap_or_default();
        for seen in addresses {
            let stays = wanted.contains(&seen.address);
            if !stays || moves {
                self.remove_address(bridge, seen.address).await?;
            }
        }
        let Some((gateway, master)) = gateway.zip(master) else {
            let leave = change(bridge.index).nocontroller().build();
            return self
                .set(leave, || format!("take {name} out of its VRF"))
                .await;
        };
        let enter = change(bridge.index).address(GATEWAY_MAC.to_vec());
        let enter = enter.controller(master).build();
        self.set(enter, || format!("put {name} into {}", gateway.vrf()))
            .await?;
        let_route(name)?;
        hear_hosts(name)?;
        for address in wanted {
            self.add_address(bridge, address).await?;
        }
        Ok(())
    }
}
