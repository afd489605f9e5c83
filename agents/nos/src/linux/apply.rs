use std::net::IpAddr;

use futures::StreamExt;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoBridge, InfoBridgePort, LinkAttribute,
    LinkMessage,
};
use rtnetlink::packet_route::neighbour::{NeighbourFlags, NeighbourMessage};
use rtnetlink::{Error, LinkBridge, LinkBridgePort, LinkMessageBuilder, LinkUnspec, LinkVxlan};

use super::observe::{
    Kind, Link, QUARANTINE, View, bridge_name, is_quarantine, tunnel_fits, tunnel_name,
};
use super::{Linux, VXLAN_PORT, failed};
use crate::back_end::NosError;
use crate::capability::Capability;
use crate::interpret::StepError;
use crate::model::{Membership, PortName};
use crate::problem::SwitchObject;
use crate::step::Step;
use crate::vni::Vni;

/// The kernel's error for an entry that exists already.
const EEXIST: i32 = 17;
/// The kernel's error for an entry that does not exist.
const ENOENT: i32 = 2;

pub(super) async fn apply(switch: &Linux, step: &Step) -> Result<(), NosError> {
    let view = switch.view().await?;
    match step {
        Step::EnsureSegment {
            vni,
            vlan: None,
            mtu,
        } => ensure_segment(switch, &view, *vni, mtu.get()).await,
        Step::RemoveSegment { vni } => remove_segment(switch, &view, *vni).await,
        Step::AddRemote { vni, remote } => add_remote(switch, &view, *vni, *remote).await,
        Step::RemoveRemote { vni, remote } => remove_remote(switch, &view, *vni, *remote).await,
        Step::Quarantine { port } => {
            let index = port_of(switch, &view, port)?.index;
            let bridge = ensure_quarantine(switch, &view).await?;
            let change = LinkUnspec::new_with_index(index).controller(bridge).build();
            set(switch, change, || format!("take {port} out of its place")).await
        }
        Step::Enter { port, place } => enter(switch, &view, port, place).await,
        Step::SetAdmin { port, up } => {
            let change = LinkUnspec::new_with_index(port_of(switch, &view, port)?.index);
            let change = if *up { change.up() } else { change.down() };
            set(switch, change.build(), || format!("set {port} up={up}")).await
        }
        Step::SetMtu { port, mtu } => {
            let change = LinkUnspec::new_with_index(port_of(switch, &view, port)?.index);
            let change = change.mtu(mtu.get()).build();
            set(switch, change, || format!("set MTU {mtu} of {port}")).await
        }
        other => Err(NosError::Unsupported(needed(other))),
    }
}

/// The capability that a step of another back-end needs.
fn needed(step: &Step) -> Capability {
    match step {
        Step::EnsureSegment { .. } => Capability::Vlans,
        Step::SetVtep { .. } => Capability::Underlay,
        Step::SetGateway { .. }
        | Step::PutL3mdevFirst
        | Step::EnsureVrf { .. }
        | Step::RemoveVrf { .. } => Capability::Vrfs,
        _ => Capability::Bgp,
    }
}

/// The bridge of quarantined ports, down.
async fn ensure_quarantine(switch: &Linux, view: &View) -> Result<u32, NosError> {
    let Some(link) = view.by_name(QUARANTINE) else {
        let bridge = LinkMessageBuilder::<LinkBridge>::new(QUARANTINE).build();
        return add_link(switch, bridge, QUARANTINE).await;
    };
    if link.kind != Kind::Bridge {
        return Err(NosError::NotOurs(QUARANTINE.to_owned()));
    }
    if !is_quarantine(link) {
        let change = LinkUnspec::new_with_index(link.index).down().build();
        set(switch, change, || format!("bring {QUARANTINE} down")).await?;
    }
    Ok(link.index)
}

async fn enter(
    switch: &Linux,
    view: &View,
    port: &PortName,
    place: &Membership,
) -> Result<(), NosError> {
    let (vni, is_private) = match place {
        Membership::Segment { vni, is_private } => (*vni, *is_private),
        Membership::Routed(_) => return Err(NosError::Unsupported(Capability::Vrfs)),
        _ => return Err(NosError::Unsupported(Capability::Underlay)),
    };
    let link = port_of(switch, view, port)?;
    let missing = || StepError::Missing(SwitchObject::Segment(vni));
    let bridge = view.by_name(&bridge_name(vni)).ok_or_else(missing)?.index;
    let is_free = view.by_name(QUARANTINE).is_some_and(|quarantine| {
        is_quarantine(quarantine) && link.controller == Some(quarantine.index)
    });
    if link.controller != Some(bridge) && !is_free {
        // Planned from an observation that is no longer true.
        return Err(StepError::NotQuarantined(SwitchObject::Port(port.clone())).into());
    }
    if link.controller != Some(bridge) {
        let change = LinkUnspec::new_with_index(link.index)
            .controller(bridge)
            .build();
        set(switch, change, || format!("put {port} into segment {vni}")).await?;
    }
    // After the port has entered: the kernel gives the flags of a port that enters their defaults.
    let flag =
        LinkBridgePort::new(link.index).append_info_data(InfoBridgePort::Isolated(is_private));
    let changed = switch.handle.link().set_port(flag.build()).execute().await;
    changed.map_err(|e| failed(format!("set {port} private={is_private}"), e))
}

async fn ensure_segment(switch: &Linux, view: &View, vni: Vni, mtu: u32) -> Result<(), NosError> {
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

async fn ensure_bridge(switch: &Linux, view: &View, vni: Vni) -> Result<u32, NosError> {
    let name = bridge_name(vni);
    if let Some(link) = view.by_name(&name) {
        return match link.kind {
            Kind::Bridge => Ok(link.index),
            _ => Err(NosError::NotOurs(name)),
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

async fn ensure_tunnel(switch: &Linux, view: &View, vni: Vni) -> Result<u32, NosError> {
    let name = tunnel_name(vni);
    if let Some(link) = view.by_name(&name) {
        if !matches!(link.kind, Kind::Vxlan { .. }) {
            return Err(NosError::NotOurs(name));
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

async fn remove_segment(switch: &Linux, view: &View, vni: Vni) -> Result<(), NosError> {
    // The kernel would leave the ports without master, routed in the default VRF.
    let bridge = view.by_name(&bridge_name(vni)).map(|bridge| bridge.index);
    let is_inside = |link: &&Link| bridge.is_some() && link.controller == bridge;
    let mut inside = view.links.iter().filter(is_inside);
    if inside.any(|link| switch.config.is_port(&link.name)) {
        return Err(StepError::InUse(SwitchObject::Segment(vni)).into());
    }
    for name in [tunnel_name(vni), bridge_name(vni)] {
        if let Some(link) = view.by_name(&name) {
            delete(switch, link).await?;
        }
    }
    Ok(())
}

async fn add_remote(switch: &Linux, view: &View, vni: Vni, remote: IpAddr) -> Result<(), NosError> {
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
) -> Result<(), NosError> {
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
) -> Result<NeighbourMessage, NosError> {
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
) -> Result<(), NosError> {
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
) -> Result<(), NosError> {
    switch
        .handle
        .link()
        .set(message)
        .execute()
        .await
        .map_err(|e| failed(action(), e))
}

async fn add_link(switch: &Linux, message: LinkMessage, name: &str) -> Result<u32, NosError> {
    let added = switch.handle.link().add(message).execute().await;
    added.map_err(|e| failed(format!("make {name}"), e))?;
    Ok(find(&switch.view().await?, name)?.index)
}

async fn delete(switch: &Linux, link: &Link) -> Result<(), NosError> {
    let deleted = switch.handle.link().del(link.index).execute().await;
    deleted.map_err(|e| failed(format!("remove {}", link.name), e))
}

fn find<'a>(view: &'a View, name: &str) -> Result<&'a Link, NosError> {
    view.by_name(name)
        .ok_or_else(|| NosError::NoInterface(name.to_owned()))
}

/// The device of a configured port. Other devices are refused, whatever a plan says.
fn port_of<'a>(switch: &Linux, view: &'a View, name: &PortName) -> Result<&'a Link, NosError> {
    let name = name.as_ref();
    if !switch.config.is_port(name) {
        return Err(NosError::NotOurs(name.to_owned()));
    }
    find(view, name)
}
