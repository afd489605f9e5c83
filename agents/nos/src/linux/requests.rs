//! Requests to the kernel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use futures::StreamExt;
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressScope};
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, BridgeBooleanOptionFlags, BridgeBooleanOptions, In6AddrGenMode,
    InfoBridge, InfoData, InfoKind, InfoVxlan, LinkAttribute, LinkInfo, LinkMessage,
};
use rtnetlink::packet_route::route::{RouteMessage, RouteType};
use rtnetlink::{Error, LinkMessageBuilder, LinkUnspec, RouteMessageBuilder};

use super::layer3::OUR_ADDRESS;
use super::link::Link;
use super::{Linux, failed};
use crate::back_end::NosError;

/// The kernel's error for an entry that exists already.
pub(super) const EEXIST: i32 = 17;
/// The kernel's error for an entry that does not exist.
pub(super) const ENOENT: i32 = 2;
/// The kernel's error for a route that does not exist.
pub(super) const ESRCH: i32 = 3;

/// Metric of the unreachable default of a VRF: behind any real route, the largest that routing
/// daemons leave free (Documentation/networking/vrf.rst).
const LAST_METRIC: u32 = 4_278_198_272;

/// The change of one device.
pub(super) fn change(index: u32) -> LinkMessageBuilder<LinkUnspec> {
    LinkUnspec::new_with_index(index)
}

impl Linux {
    pub(super) async fn send(
        &self,
        request: NetlinkMessage<RouteNetlinkMessage>,
        action: &str,
        harmless: i32,
    ) -> Result<(), NosError> {
        let mut handle = self.handle.clone();
        let mut answers = handle.request(request).map_err(|e| failed(action, e))?;
        while let Some(answer) = answers.next().await {
            if let NetlinkPayload::Error(error) = answer.payload
                && error.raw_code() != -harmless
                && error.code.is_some()
            {
                return Err(failed(action, Error::NetlinkError(error)));
            }
        }
        Ok(())
    }

    pub(super) async fn set(
        &self,
        message: LinkMessage,
        action: impl FnOnce() -> String,
    ) -> Result<(), NosError> {
        let set = self.handle.link().set(message).execute().await;
        set.map_err(|e| failed(action(), e))
    }

    pub(super) async fn set_tunnel(
        &self,
        link: &Link,
        settings: Vec<InfoVxlan>,
        action: &str,
    ) -> Result<(), NosError> {
        let data = InfoData::Vxlan(settings);
        self.set_kind(link, InfoKind::Vxlan, data, action).await
    }

    /// Has a bridge learn nobody from link-local frames, and put its ports into no VLAN.
    pub(super) async fn set_plain(&self, bridge: &Link) -> Result<(), NosError> {
        let flag = BridgeBooleanOptionFlags::NoLinkLocalLearn;
        let options = BridgeBooleanOptions {
            value: flag,
            mask: flag,
        };
        let mut settings = vec![InfoBridge::MultiBoolOpt(options)];
        if bridge.has_vlan {
            settings.push(InfoBridge::VlanDefaultPvid(0));
        }
        let data = InfoData::Bridge(settings);
        let action = format!("set {} no_linklocal_learn and no VLAN", bridge.name);
        self.set_kind(bridge, InfoKind::Bridge, data, &action).await
    }

    /// Changes settings of a kind of device, which the kernel takes only in a request to make one.
    async fn set_kind(
        &self,
        link: &Link,
        kind: InfoKind,
        data: InfoData,
        action: &str,
    ) -> Result<(), NosError> {
        let mut message = LinkMessage::default();
        message.header.index = link.index;
        let info = vec![LinkInfo::Kind(kind), LinkInfo::Data(data)];
        message.attributes.push(LinkAttribute::LinkInfo(info));
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewLink(message));
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK;
        self.send(request, action, 0).await
    }

    /// Makes a device and returns its index.
    pub(super) async fn add_link(&self, message: LinkMessage, name: &str) -> Result<u32, NosError> {
        let added = self.handle.link().add(message).execute().await;
        added.map_err(|e| failed(format!("make {name}"), e))?;
        Ok(self.devices().await?.find(name)?.index)
    }

    pub(super) async fn delete(&self, link: &Link) -> Result<(), NosError> {
        let deleted = self.handle.link().del(link.index).execute().await;
        deleted.map_err(|e| failed(format!("remove {}", link.name), e))
    }

    /// Lets a device have no IPv6 link-local address: the switch must send nothing of its own into
    /// a tenant's segment. To be called before the device comes up, when the kernel adds it.
    pub(super) async fn silence(&self, index: u32, name: &str) -> Result<(), NosError> {
        let mut quiet = change(index).build();
        let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        let specific = LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![mode])]);
        quiet.attributes.push(specific);
        if let Err(error) = self.set(quiet, || format!("silence {name}")).await {
            // A kernel without IPv6 refuses, and adds no address either.
            tracing::debug!(device = %name, error = %error, "cannot turn off IPv6 on device");
        }
        Ok(())
    }

    /// Gives a device an address with our mark. Each leaf has the same gateway: no check for
    /// duplicates.
    ///
    /// The network address of a prefix gets the scope of the host: kernels before 5.14 answer no ARP
    /// request from it, and with this scope the switch asks from its other addresses.
    pub(super) async fn add_address(
        &self,
        link: &Link,
        address: ipnet::IpNet,
    ) -> Result<(), NosError> {
        let addresses = self.handle.address();
        let mut request = addresses
            .add(link.index, address.addr(), address.prefix_len())
            .replace();
        let message = request.message_mut();
        message
            .attributes
            .push(AddressAttribute::Protocol(OUR_ADDRESS));
        if address.addr().is_ipv4() && is_network_address(address) {
            message.header.scope = AddressScope::Host;
        }
        if address.addr().is_ipv6() {
            message.header.flags |= AddressHeaderFlags::Nodad;
        }
        let done = request.execute().await;
        done.map_err(|e| failed(format!("set {address} on {}", link.name), e))
    }

    pub(super) async fn remove_address(
        &self,
        link: &Link,
        address: ipnet::IpNet,
    ) -> Result<(), NosError> {
        let addresses = self.handle.address();
        let (ip, length) = (address.addr(), address.prefix_len());
        let message = addresses.add(link.index, ip, length).message_mut().clone();
        let done = addresses.del(message).execute().await;
        done.map_err(|e| failed(format!("remove {address} from {}", link.name), e))
    }
}

/// The unreachable defaults of a table.
pub(super) fn unreachable_defaults(table: u32) -> [RouteMessage; 2] {
    let v4 = RouteMessageBuilder::<Ipv4Addr>::new()
        .table_id(table)
        .kind(RouteType::Unreachable)
        .priority(LAST_METRIC);
    let v6 = RouteMessageBuilder::<Ipv6Addr>::new()
        .table_id(table)
        .kind(RouteType::Unreachable)
        .priority(LAST_METRIC);
    [v4.build(), v6.build()]
}

/// Sets a kernel setting of a device in one address family. Without the family there is nothing to
/// set.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn set_device(
    family: &str,
    device: &str,
    key: &str,
    value: &str,
) -> Result<(), NosError> {
    let path = PathBuf::from(format!("/proc/sys/net/{family}/conf/{device}/{key}"));
    match std::fs::write(&path, value) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(|source| NosError::Setting { path, source }),
    }
}

/// Lets a device route packets, IPv4 by its own setting and IPv6 by that of the whole namespace.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn let_route(device: &str) -> Result<(), NosError> {
    set_device("ipv4", device, "forwarding", "1")?;
    set_device("ipv6", "all", "forwarding", "1")?;
    set_device("ipv6", device, "forwarding", "1")
}

/// `true` for the first address of a prefix of several.
fn is_network_address(address: ipnet::IpNet) -> bool {
    address.prefix_len() < 31 && address.addr() == address.network()
}

/// An address alone as a prefix.
pub(super) fn host(address: IpAddr) -> ipnet::IpNet {
    address.into()
}
