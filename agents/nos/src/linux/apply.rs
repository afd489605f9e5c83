//! Steps that change the kernel.

use rtnetlink::{LinkBridge, LinkMessageBuilder};

use super::Linux;
use super::link::{Kind, Link};
use super::names::{QUARANTINE, bridge_name, is_quarantine};
use super::requests::{change, let_route, set_device};
use super::view::View;
use crate::back_end::NosError;
use crate::capability::Capability;
use crate::interpret::StepError;
use crate::model::{Membership, PortName};
use crate::problem::SwitchObject;
use crate::step::Step;

impl Linux {
    /// Applies the kernel's part of a step.
    pub(super) async fn apply_to_kernel(&self, step: &Step) -> Result<(), NosError> {
        let view = self.view().await?;
        let is_routing = self.config.frr.is_some();
        match step {
            Step::EnsureSegment {
                vni,
                vlan: None,
                mtu,
                tunnel,
            } => {
                let (vni, mtu) = (*vni, mtu.get());
                self.ensure_segment(&view, vni, mtu, *tunnel).await
            }
            Step::RemoveSegment { vni } => {
                self.check_empty(&view, &bridge_name(*vni), SwitchObject::Segment(*vni))?;
                self.remove_bridge(&view, *vni, &bridge_name(*vni)).await
            }
            Step::AddRemote { vni, remote } => self.add_remote(&view, *vni, *remote).await,
            Step::RemoveRemote { vni, remote } => self.remove_remote(&view, *vni, *remote).await,
            Step::Quarantine { port } => self.quarantine(&view, port).await,
            Step::Enter { port, place } => self.enter(&view, port, place).await,
            Step::SetAdmin { port, up } => {
                let change = change(self.port_of(&view, port)?.index);
                let change = if *up { change.up() } else { change.down() };
                self.set(change.build(), || format!("set {port} up={up}"))
                    .await
            }
            Step::SetMtu { port, mtu } => {
                let change = change(self.port_of(&view, port)?.index);
                let change = change.mtu(mtu.get()).build();
                self.set(change, || format!("set MTU {mtu} of {port}"))
                    .await
            }
            Step::SetGateway { vni, gateway } if is_routing => {
                self.set_gateway(&view, *vni, gateway.as_ref()).await
            }
            Step::PutL3mdevFirst if is_routing => self.put_l3mdev_first().await,
            Step::EnsureVrf { name, vrf } if is_routing => self.ensure_vrf(&view, name, *vrf).await,
            Step::RemoveVrf { name } if is_routing => {
                self.check_empty(&view, name.as_ref(), SwitchObject::Vrf(name.clone()))?;
                self.remove_vrf(&view, name).await
            }
            Step::EnsurePacketFilter
            | Step::SetVxlanFilter { .. }
            | Step::RemoveVxlanFilter { .. }
                if self.has_filter =>
            {
                self.change_packet_filter(step).await
            }
            Step::SetVtep { address } if is_routing => self.set_vtep(&view, *address).await,
            other => Err(NosError::Unsupported(needed(other))),
        }
    }

    /// Takes a port out of its place. Without IPv6 it does not speak for the switch, and takes no
    /// router's word: what comes in a frame to a group of the link passes its bridge.
    async fn quarantine(&self, view: &View, port: &PortName) -> Result<(), NosError> {
        let index = self.port_of(view, port)?.index;
        let bridge = self.ensure_quarantine(view).await?;
        set_device("ipv6", port.as_ref(), "disable_ipv6", "1")?;
        if self.config.frr.is_some() {
            set_device("ipv4", port.as_ref(), "forwarding", "0")?;
        }
        let leave = change(index).controller(bridge).build();
        self.set(leave, || format!("take {port} out of its place"))
            .await
    }

    /// The bridge of quarantined ports, down.
    async fn ensure_quarantine(&self, view: &View) -> Result<u32, NosError> {
        let Some(link) = view.quarantine() else {
            let bridge = LinkMessageBuilder::<LinkBridge>::new(QUARANTINE).build();
            return self.add_link(bridge, QUARANTINE).await;
        };
        if link.kind != Kind::Bridge {
            return Err(NosError::NotOurs(QUARANTINE.to_owned()));
        }
        if !is_quarantine(link) {
            let down = change(link.index).down().build();
            self.set(down, || format!("bring {QUARANTINE} down"))
                .await?;
        }
        Ok(link.index)
    }

    async fn enter(
        &self,
        view: &View,
        port: &PortName,
        place: &Membership,
    ) -> Result<(), NosError> {
        let link = self.port_of(view, port)?;
        match place {
            Membership::Segment { vni, is_private } => {
                let missing = || StepError::Missing(SwitchObject::Segment(*vni));
                let bridge = view.by_name(&bridge_name(*vni)).ok_or_else(missing)?.index;
                check_free(view, link, port, Some(bridge))?;
                self.enter_bridge(link, bridge, *is_private).await
            }
            Membership::Routed(vrf) if self.config.frr.is_some() => {
                let missing = || StepError::Missing(SwitchObject::Vrf(vrf.clone()));
                let master = view.by_name(vrf.as_ref()).ok_or_else(missing)?.index;
                check_free(view, link, port, Some(master))?;
                let enter = change(link.index).controller(master).build();
                self.set(enter, || format!("put {port} into {vrf}")).await?;
                route_port(&link.name)
            }
            Membership::Underlay if self.config.frr.is_some() => {
                check_free(view, link, port, None)?;
                let enter = change(link.index).nocontroller().build();
                self.set(enter, || format!("put {port} into the underlay"))
                    .await?;
                route_port(&link.name)
            }
            Membership::Routed(_) => Err(NosError::Unsupported(Capability::Vrfs)),
            _ => Err(NosError::Unsupported(Capability::Underlay)),
        }
    }

    /// Refuses to remove a device that a port is in: the kernel would leave the port without master,
    /// routed in the default VRF.
    fn check_empty(&self, view: &View, device: &str, object: SwitchObject) -> Result<(), NosError> {
        let master = view.by_name(device).map(|link| link.index);
        let is_inside = |link: &&Link| master.is_some() && link.controller == master;
        let mut inside = view.links.iter().filter(is_inside);
        if inside.any(|link| self.config.is_port(&link.name)) {
            return Err(StepError::InUse(object).into());
        }
        Ok(())
    }

    /// The device of a configured port. Other devices are refused, whatever a plan says.
    fn port_of<'a>(&self, view: &'a View, name: &PortName) -> Result<&'a Link, NosError> {
        let name = name.as_ref();
        if !self.config.is_port(name) {
            return Err(NosError::NotOurs(name.to_owned()));
        }
        view.find(name)
    }
}

/// Refuses a port that is neither in quarantine nor there already: the step was planned from an
/// observation that is no longer true.
fn check_free(
    view: &View,
    link: &Link,
    port: &PortName,
    target: Option<u32>,
) -> Result<(), NosError> {
    let quarantine = view.quarantine().filter(|found| is_quarantine(found));
    let is_free = quarantine.is_some_and(|found| link.controller == Some(found.index));
    if is_free || link.controller == target {
        return Ok(());
    }
    Err(StepError::NotQuarantined(SwitchObject::Port(port.clone())).into())
}

/// Lets a port route. BGP finds its neighbour by IPv6 link-local addresses; routes come from BGP
/// alone, never from a router advertisement. Paths over several spines or leaves are not symmetric,
/// and in a VRF the kernel compares the sender with the VRF, not with the port: no check of it.
fn route_port(port: &str) -> Result<(), NosError> {
    set_device("ipv6", port, "accept_ra", "0")?;
    set_device("ipv6", port, "addr_gen_mode", "0")?;
    set_device("ipv6", port, "disable_ipv6", "0")?;
    set_device("ipv4", port, "rp_filter", "0")?;
    let_route(port)
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
        Step::EnsurePacketFilter | Step::SetVxlanFilter { .. } | Step::RemoveVxlanFilter { .. } => {
            Capability::PacketFilter
        }
        _ => Capability::Bgp,
    }
}
