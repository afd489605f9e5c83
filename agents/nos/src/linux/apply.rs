use std::net::IpAddr;

use futures::StreamExt;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoBridge, LinkAttribute, LinkMessage,
};
use rtnetlink::packet_route::neighbour::{NeighbourFlags, NeighbourMessage};
use rtnetlink::{Error, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVxlan};

use super::observe::{Kind, Link, View, bridge_name, tunnel_fits, tunnel_name};
use super::{Linux, VXLAN_PORT, failed};
use crate::vni::Vni;
use crate::{Delta, OsError};

/// The kernel's error for an entry that exists already.
const EEXIST: i32 = 17;
/// The kernel's error for an entry that does not exist.
const ENOENT: i32 = 2;

pub(super) async fn apply(switch: &Linux, delta: &Delta) -> Result<(), OsError> {
    let view = switch.view().await?;
    match delta {
        Delta::EnsureSegment { vni, mtu } => ensure_segment(switch, &view, *vni, *mtu).await,
        Delta::RemoveSegment { vni } => remove_segment(switch, &view, *vni).await,
        Delta::AddRemote { vni, remote } => add_remote(switch, &view, *vni, *remote).await,
        Delta::RemoveRemote { vni, remote } => remove_remote(switch, &view, *vni, *remote).await,
        Delta::Isolate { port } => {
            let index = port_of(switch, &view, port)?.index;
            let change = LinkUnspec::new_with_index(index).nocontroller().build();
            set(switch, change, || format!("take {port} out of its segment")).await
        }
        Delta::Move { port, vni } => {
            let index = port_of(switch, &view, port)?.index;
            let bridge = find(&view, &bridge_name(*vni))?.index;
            let change = LinkUnspec::new_with_index(index).controller(bridge).build();
            set(switch, change, || format!("put {port} into segment {vni}")).await
        }
        Delta::SetAdmin { port, up } => {
            let change = LinkUnspec::new_with_index(port_of(switch, &view, port)?.index);
            let change = if *up { change.up() } else { change.down() };
            set(switch, change.build(), || format!("set {port} up={up}")).await
        }
    }
}

async fn ensure_segment(switch: &Linux, view: &View, vni: Vni, mtu: u32) -> Result<(), OsError> {
    let bridge = ensure_bridge(switch, view, vni).await?;
    let tunnel = ensure_tunnel(switch, view, vni).await?;
    for (index, name) in [(tunnel, tunnel_name(vni)), (bridge, bridge_name(vni))] {
        // No IPv6 link-local address: the switch must send nothing of its own into a tenant's
        // segment. Set before the device comes up, because the kernel adds the address then.
        let mut quiet = LinkUnspec::new_with_index(index).build();
        quiet
            .attributes
            .push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(
                vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)],
            )]));
        if let Err(error) = set(switch, quiet, || format!("silence {name}")).await {
            // A kernel without IPv6 refuses, and adds no address either.
            tracing::debug!(device = %name, error = %error, "cannot turn off IPv6 on device");
        }
        let change = LinkUnspec::new_with_index(index).mtu(mtu).up().build();
        set(switch, change, || format!("bring {name} up with MTU {mtu}")).await?;
    }
    let join = LinkUnspec::new_with_index(tunnel)
        .controller(bridge)
        .build();
    set(switch, join, || {
        format!("put {} into its bridge", tunnel_name(vni))
    })
    .await
}

async fn ensure_bridge(switch: &Linux, view: &View, vni: Vni) -> Result<u32, OsError> {
    let name = bridge_name(vni);
    if let Some(link) = view.by_name(&name) {
        return match link.kind {
            Kind::Bridge => Ok(link.index),
            _ => Err(OsError::NotOurs(name)),
        };
    }
    // No forward delay: if an operator turned STP on, a port would drop a booting machine's DHCP
    // for 30 s. No multicast snooping: it trusts the queriers of tenants, and drops the groups of
    // hosts that have not answered them.
    let bridge = LinkMessageBuilder::<LinkBridge>::new(&name)
        .append_info_data(InfoBridge::ForwardDelay(0))
        .append_info_data(InfoBridge::MulticastSnooping(false));
    add_link(switch, bridge.build(), &name).await
}

async fn ensure_tunnel(switch: &Linux, view: &View, vni: Vni) -> Result<u32, OsError> {
    let name = tunnel_name(vni);
    if let Some(link) = view.by_name(&name) {
        if !matches!(link.kind, Kind::Vxlan { .. }) {
            return Err(OsError::NotOurs(name));
        }
        if tunnel_fits(link, vni, &switch.config) {
            return Ok(link.index);
        }
        // No kernel can change VNI or port of an existing tunnel device, and older ones not its
        // source address either.
        delete(switch, link).await?;
    }
    let tunnel = LinkVxlan::new(&name, vni.get())
        .port(VXLAN_PORT)
        .learning(true);
    let tunnel = match switch.config.vtep {
        IpAddr::V4(address) => tunnel.local(address),
        IpAddr::V6(address) => tunnel.local6(address),
    };
    add_link(switch, tunnel.build(), &name).await
}

async fn remove_segment(switch: &Linux, view: &View, vni: Vni) -> Result<(), OsError> {
    for name in [tunnel_name(vni), bridge_name(vni)] {
        if let Some(link) = view.by_name(&name) {
            delete(switch, link).await?;
        }
    }
    Ok(())
}

async fn add_remote(switch: &Linux, view: &View, vni: Vni, remote: IpAddr) -> Result<(), OsError> {
    let message = flood_entry(switch, view, vni, remote)?;
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewNeighbour(message));
    // Append, not replace: the all-zeros address has one entry per remote end.
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND;
    let action = format!("add tunnel end {remote} to segment {vni}");
    send(switch, request, &action, EEXIST).await
}

async fn remove_remote(
    switch: &Linux,
    view: &View,
    vni: Vni,
    remote: IpAddr,
) -> Result<(), OsError> {
    let message = flood_entry(switch, view, vni, remote)?;
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::DelNeighbour(message));
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK;
    let action = format!("cut tunnel end {remote} off segment {vni}");
    send(switch, request, &action, ENOENT).await
}

fn flood_entry(
    switch: &Linux,
    view: &View,
    vni: Vni,
    remote: IpAddr,
) -> Result<NeighbourMessage, OsError> {
    let tunnel = find(view, &tunnel_name(vni))?.index;
    let mut request = switch
        .handle
        .neighbours()
        .add_bridge(tunnel, &[0; 6])
        .destination(remote)
        .flags(NeighbourFlags::Own);
    Ok(request.message_mut().clone())
}

async fn send(
    switch: &Linux,
    request: NetlinkMessage<RouteNetlinkMessage>,
    action: &str,
    harmless: i32,
) -> Result<(), OsError> {
    let mut handle = switch.handle.clone();
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

async fn set(
    switch: &Linux,
    message: LinkMessage,
    action: impl FnOnce() -> String,
) -> Result<(), OsError> {
    switch
        .handle
        .link()
        .set(message)
        .execute()
        .await
        .map_err(|e| failed(action(), e))
}

async fn add_link(switch: &Linux, message: LinkMessage, name: &str) -> Result<u32, OsError> {
    let added = switch.handle.link().add(message).execute().await;
    added.map_err(|e| failed(format!("make {name}"), e))?;
    Ok(find(&switch.view().await?, name)?.index)
}

async fn delete(switch: &Linux, link: &Link) -> Result<(), OsError> {
    let deleted = switch.handle.link().del(link.index).execute().await;
    deleted.map_err(|e| failed(format!("remove {}", link.name), e))
}

fn find<'a>(view: &'a View, name: &str) -> Result<&'a Link, OsError> {
    view.by_name(name)
        .ok_or_else(|| OsError::NoInterface(name.to_owned()))
}

/// The device of a configured port. Other devices are refused, whatever a plan says.
fn port_of<'a>(switch: &Linux, view: &'a View, name: &str) -> Result<&'a Link, OsError> {
    if !switch.config.is_port(name) {
        return Err(OsError::NotOurs(name.to_owned()));
    }
    find(view, name)
}
