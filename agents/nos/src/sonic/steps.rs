//! The writes of each step of ports and segments, in their order.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::error::SonicError;
use super::names::{GATEWAY_MAC, MapUse, is_of_kernel, vlan_name};
use super::observe::member_vlan;
use super::phase::{Phase, Sign};
use super::snapshot::{Map, Snapshot};
use crate::back_end::NosError;
use crate::capability::Capability;
use crate::interpret::StepError;
use crate::model::{Gateway, Membership, Mtu, PortName, Tunnel, Vlan, VrfName};
use crate::problem::SwitchObject;
use crate::step::Step;
use crate::vni::Vni;

/// The switch as it is, and the VLANs that are the agent's alone.
pub(super) struct Planner<'a> {
    pub(super) seen: &'a Snapshot,
    pub(super) vlans: &'a RangeInclusive<u16>,
}

pub(super) type Phases = Result<Vec<Phase>, NosError>;

impl Planner<'_> {
    /// The phases of a step.
    pub(super) fn phases(&self, step: &Step) -> Phases {
        match step {
            Step::SetAdmin { port, up } => {
                let status = if *up { "up" } else { "down" };
                Ok(port_setting(port, "admin_status", status))
            }
            Step::SetMtu { port, mtu } => Ok(port_setting(port, "mtu", &mtu.to_string())),
            Step::Quarantine { port } => Ok(self.quarantine(port)),
            Step::Enter { port, place } => self.enter(port, place),
            Step::EnsureSegment {
                vni,
                vlan,
                mtu,
                tunnel,
            } => self.ensure_segment(*vni, *vlan, *mtu, *tunnel),
            Step::RemoveSegment { vni } => self.remove_segment(*vni),
            Step::SetGateway { vni, gateway } => self.set_gateway(*vni, gateway.as_ref()),
            Step::EnsureVrf { name, vrf } => self.ensure_vrf(name, *vrf),
            Step::RemoveVrf { name } => self.remove_vrf(name),
            Step::SetVtep { address } => self.set_vtep(*address),
            Step::PutL3mdevFirst => Ok(Vec::new()),
            Step::AddRemote { .. } | Step::RemoveRemote { .. } => {
                Err(NosError::Unsupported(Capability::Remotes))
            }
            Step::EnsurePacketFilter
            | Step::SetVxlanFilter { .. }
            | Step::RemoveVxlanFilter { .. } => {
                Err(NosError::Unsupported(Capability::PacketFilter))
            }
            _ => Err(NosError::Unsupported(Capability::Bgp)),
        }
    }

    /// Takes a port out of everything: addresses before the interface that has them.
    fn quarantine(&self, port: &PortName) -> Vec<Phase> {
        let mut first = Phase::default();
        for key in self.seen.memberships(port.as_ref()) {
            first = first.remove(key);
            if let Some(vlan) = member_vlan(key) {
                let key = format!("VLAN_MEMBER_TABLE:{vlan}:{port}");
                first = first.until(Sign::NotApplied(key));
            }
        }
        for (key, address) in self.seen.addresses("INTERFACE", port.as_ref()) {
            let applied = Sign::NotApplied(format!("INTF_TABLE:{port}:{address}"));
            first = first.remove(key).until(applied);
        }
        let last = Phase::default().remove(format!("INTERFACE|{port}"));
        let last = last.until(Sign::NotApplied(format!("INTF_TABLE:{port}")));
        let last = last.until(Sign::Port(port.to_string(), false, false));
        let mut phases = vec![first, last];
        let mut grouped = self.seen.grouped();
        if grouped.remove(port.as_ref()) {
            // After the port has left: it is private as long as it is there.
            phases.push(Phase::default().isolate(&grouped));
        }
        phases
    }

    fn enter(&self, port: &PortName, place: &Membership) -> Phases {
        let phase = match place {
            Membership::Segment { vni, is_private } => {
                return self.enter_segment(port, *vni, *is_private);
            }
            Membership::Routed(vrf) => routed(port, Some(vrf.as_ref())),
            Membership::Underlay => routed(port, None),
            Membership::Quarantine | Membership::Foreign(_) => {
                let port = SwitchObject::Port(port.clone());
                return Err(StepError::NotQuarantined(port).into());
            }
        };
        Ok(vec![phase])
    }

    /// The group first, so that a private port is private before it is in the VLAN; the kernel's
    /// flag last, because a port gets its flags anew with its bridge.
    fn enter_segment(&self, port: &PortName, vni: Vni, is_private: bool) -> Phases {
        let name: &str = port.as_ref();
        let vlan = self.vlan_of_segment(vni)?;
        let mut phases = Vec::new();
        let mut grouped = self.seen.grouped();
        let changes = if is_private {
            grouped.insert(name)
        } else {
            grouped.remove(name)
        };
        if changes {
            phases.push(Phase::default().isolate(&grouped));
        }
        let fields = [("tagging_mode", "untagged")];
        let entry = Phase::default()
            .set(format!("VLAN_MEMBER|{vlan}|{port}"), &fields)
            .applied(format!("VLAN_MEMBER_TABLE:{vlan}:{port}"), &fields)
            .until(Sign::Port(port.to_string(), true, false))
            .until(Sign::Isolated(port.to_string(), is_private));
        // A port that enters a bridge has no flag there.
        let stays = self.seen.asic.bridged.contains(name);
        phases.push(match is_private || stays {
            true => entry.flagged(name, is_private),
            false => entry,
        });
        Ok(phases)
    }

    /// The map of a segment.
    fn map_of_segment(&self, vni: Vni) -> Option<Map<'_>> {
        let is_ours = |map: &Map<'_>| matches!(map.of, Some(MapUse::Segment | MapUse::Vlan));
        self.seen.maps().find(|map| map.vni == vni && is_ours(map))
    }

    fn vlan_of_segment(&self, vni: Vni) -> Result<String, NosError> {
        let missing = || StepError::Missing(SwitchObject::Segment(vni));
        let map = self.map_of_segment(vni).ok_or_else(missing)?;
        Ok(vlan_name(map.vlan))
    }

    fn ensure_segment(&self, vni: Vni, vlan: Option<Vlan>, mtu: Mtu, tunnel: Tunnel) -> Phases {
        if tunnel == Tunnel::Private {
            return Err(NosError::Unsupported(Capability::PrivateTunnels));
        }
        self.check_vni(vni)?;
        let of = if vlan.is_some() {
            MapUse::Vlan
        } else {
            MapUse::Segment
        };
        let on = match (self.map_of_segment(vni), vlan) {
            (Some(map), _) => map.vlan,
            (None, Some(vlan)) => self.bare(vlan)?,
            (None, None) => self.free_vlan()?,
        };
        let name = vlan_name(on);
        let mut phases = Vec::new();
        if self.is_left_behind(&name) {
            phases.extend(self.leave_interface(&name));
        }
        let is_whole = self
            .seen
            .observation(|_| false)
            .model
            .segments
            .get(&vni)
            .is_none_or(|segment| segment.is_intact);
        if !is_whole {
            // The remains of a gateway belong to nobody, and neither do further maps.
            phases.extend(self.leave_interface(&name));
            phases.push(self.remove_maps(|map| map.vni == vni && map.of != Some(of)));
        }
        phases.push(self.mapped(on, mtu, of, vni, tunnel)?);
        Ok(phases)
    }

    /// A VLAN with its map to a VNI, or with a note in the place of one. The other one goes with the
    /// same write, so that the segment has one at every moment.
    pub(super) fn mapped(
        &self,
        on: Vlan,
        mtu: Mtu,
        of: MapUse,
        vni: Vni,
        tunnel: Tunnel,
    ) -> Result<Phase, NosError> {
        let is_local = tunnel == Tunnel::Absent;
        let (name, map) = (vlan_name(on), of.name(vni));
        let (number, mtu, vni) = (on.to_string(), mtu.to_string(), vni.to_string());
        let vlan = [
            ("vlanid", number.as_str()),
            ("mtu", mtu.as_str()),
            ("admin_status", "up"),
        ];
        let fields = [("vlan", name.as_str()), ("vni", vni.as_str())];
        let is_other = |seen: &Map<'_>| seen.vlan == on && seen.is_local != is_local;
        let phase = self
            .remove_maps(|seen| seen.of == Some(of) && is_other(seen))
            .set(format!("VLAN|{name}"), &vlan)
            .applied(format!("VLAN_TABLE:{name}"), &vlan[1..])
            .until(Sign::Made(format!("VLAN_TABLE|{name}")));
        if is_local {
            return Ok(phase.set(format!("METALMESH_SEGMENT|{map}"), &fields));
        }
        let missing = || StepError::Missing(SwitchObject::Vtep);
        let tunnel = self.seen.tunnel().ok_or_else(missing)?;
        Ok(phase
            .set(format!("VXLAN_TUNNEL_MAP|{tunnel}|{map}"), &fields)
            .applied(format!("VXLAN_TUNNEL_MAP_TABLE:{tunnel}:{map}"), &fields))
    }

    fn remove_segment(&self, vni: Vni) -> Phases {
        let mut phases = Vec::new();
        let Some(map) = self.map_of_segment(vni) else {
            return Ok(phases);
        };
        let name = vlan_name(map.vlan);
        if self.seen.has_members(&name) {
            return Err(StepError::InUse(SwitchObject::Segment(vni)).into());
        }
        phases.extend(self.leave_interface(&name));
        phases.extend(self.unmapped(map.vlan, vni));
        Ok(phases)
    }

    /// Removes the maps of a VLAN, and then the VLAN.
    pub(super) fn unmapped(&self, on: Vlan, vni: Vni) -> [Phase; 2] {
        let name = vlan_name(on);
        let vlan = Phase::default()
            .remove(format!("VLAN|{name}"))
            .until(Sign::NotApplied(format!("VLAN_TABLE:{name}")))
            .until(Sign::NotMade(format!("VLAN_TABLE|{name}")));
        [
            self.remove_maps(|map| map.vni == vni && map.of.is_some()),
            vlan,
        ]
    }

    pub(super) fn remove_maps(&self, is_gone: impl Fn(&Map<'_>) -> bool) -> Phase {
        let mut phase = Phase::default();
        for map in self.seen.maps().filter(|map| is_gone(map)) {
            phase = phase.remove(map.key);
            if map.is_local {
                continue;
            }
            let rest = map.key.trim_start_matches("VXLAN_TUNNEL_MAP|");
            let applied = format!("VXLAN_TUNNEL_MAP_TABLE:{}", rest.replace('|', ":"));
            phase = phase.until(Sign::NotApplied(applied));
        }
        phase
    }

    fn set_gateway(&self, vni: Vni, gateway: Option<&Gateway>) -> Phases {
        let Some(gateway) = gateway else {
            let map = self.map_of_segment(vni);
            return Ok(map.map_or(Vec::new(), |map| {
                self.leave_interface(&vlan_name(map.vlan)).into()
            }));
        };
        let vlan = self.vlan_of_segment(vni)?;
        let key = format!("VLAN_INTERFACE|{vlan}");
        let mut phases = Vec::new();
        let vrf = self.seen.field(&key, "vrf_name");
        let stays = vrf == Some(gateway.vrf().as_ref());
        if self.seen.config.contains_key(&key) && !stays {
            phases.extend(self.leave_interface(&vlan));
        }
        let mut made = Phase::default();
        if self.seen.field("SAG|GLOBAL", "gateway_mac").is_none() {
            made = made.set("SAG|GLOBAL", &[("gateway_mac", GATEWAY_MAC)]);
        }
        let vrf = ("vrf_name", gateway.vrf().as_ref());
        let made = made.set(key, &[vrf, ("static_anycast_gateway", "true")]);
        phases.push(made.applied(format!("INTF_TABLE:{vlan}"), &[vrf]));
        let mut addresses = Phase::default();
        for (key, address) in self.seen.addresses("VLAN_INTERFACE", &vlan) {
            let parsed: Option<ipnet::IpNet> = address.parse().ok();
            if stays && !parsed.is_some_and(|address| gateway.addresses().contains(&address)) {
                let gone = Sign::NotApplied(format!("INTF_TABLE:{vlan}:{address}"));
                addresses = addresses.remove(key).until(gone);
            }
        }
        for address in gateway.addresses() {
            addresses = addresses.set(format!("VLAN_INTERFACE|{vlan}|{address}"), &[]);
            if !is_of_kernel(&address.to_string()) {
                addresses = addresses.applied(format!("INTF_TABLE:{vlan}:{address}"), &[]);
            }
        }
        phases.push(addresses);
        Ok(phases)
    }

    /// Removes the interface of a VLAN: its addresses first.
    pub(super) fn leave_interface(&self, vlan: &str) -> [Phase; 2] {
        let mut first = Phase::default();
        for (key, address) in self.seen.addresses("VLAN_INTERFACE", vlan) {
            let gone = Sign::NotApplied(format!("INTF_TABLE:{vlan}:{address}"));
            first = first.remove(key).until(gone);
        }
        let last = Phase::default()
            .remove(format!("VLAN_INTERFACE|{vlan}"))
            .until(Sign::NotApplied(format!("INTF_TABLE:{vlan}")));
        [first, last]
    }

    /// Refuses a VNI that somebody else's map has.
    pub(super) fn check_vni(&self, vni: Vni) -> Result<(), NosError> {
        let mut others = self
            .seen
            .maps()
            .filter(|map| map.vni == vni && map.of.is_none());
        let other = others.next().map(|map| map.key.to_owned());
        other.map_or(Ok(()), |key| Err(SonicError::Occupied(key).into()))
    }

    /// A VLAN that control has chosen: new, or without ports, interface and map.
    fn bare(&self, vlan: Vlan) -> Result<Vlan, NosError> {
        let name = vlan_name(vlan);
        let interface = format!("VLAN_INTERFACE|{name}");
        let is_routed = self.seen.config.contains_key(&interface) && !self.is_left_behind(&name);
        let is_used = is_routed
            || self.seen.has_members(&name)
            || self.seen.maps().any(|map| map.vlan == vlan);
        if is_used {
            return Err(SonicError::Occupied(format!("VLAN|{name}")).into());
        }
        Ok(vlan)
    }

    /// `true` if a VLAN has an interface in a VRF of ours, and no map any more: what is left of a
    /// segment or a VRF whose map somebody removed.
    pub(super) fn is_left_behind(&self, vlan: &str) -> bool {
        let vrf = self
            .seen
            .field(&format!("VLAN_INTERFACE|{vlan}"), "vrf_name");
        let vrf = vrf.and_then(|name| VrfName::new(name).ok());
        vrf.is_some_and(|vrf| vrf.is_managed())
            && !self.seen.maps().any(|map| vlan_name(map.vlan) == vlan)
    }

    /// The first VLAN of the agent's range that no map has. One that was left behind is taken.
    pub(super) fn free_vlan(&self) -> Result<Vlan, NosError> {
        let numbers = self.vlans.clone();
        let mut vlans = numbers.filter_map(|number| Vlan::new(number).ok());
        let free = vlans.find(|vlan| self.bare(*vlan).is_ok());
        let (first, last) = (*self.vlans.start(), *self.vlans.end());
        free.ok_or_else(|| SonicError::NoVlan(first, last).into())
    }

    /// `true` if an address of a loopback is the source of the tunnel, and thereby ours.
    pub(super) fn loopback_of(&self, source: IpAddr) -> impl Iterator<Item = (&str, &str)> {
        let addresses = self
            .seen
            .addresses("LOOPBACK_INTERFACE", super::names::LOOPBACK);
        addresses.filter(move |(_, address)| {
            let address: Option<ipnet::IpNet> = address.parse().ok();
            address.is_some_and(|address| address.addr() == source)
        })
    }

    /// The VLAN that carries the routes of a VNI.
    pub(super) fn carrier(&self, vni: Vni) -> Option<Vlan> {
        let mut maps = self.seen.maps();
        let map = maps.find(|map| map.vni == vni && map.of == Some(MapUse::Vrf));
        map.map(|map| map.vlan)
    }
}

fn port_setting(port: &PortName, field: &str, value: &str) -> Vec<Phase> {
    let phase = Phase::default().set(format!("PORT|{port}"), &[(field, value)]);
    vec![phase.applied(format!("PORT_TABLE:{port}"), &[(field, value)])]
}

/// Routes a port, in the default VRF if `vrf` is `None`. It speaks by its link-local address.
fn routed(port: &PortName, vrf: Option<&str>) -> Phase {
    let mut fields = vec![("ipv6_use_link_local_only", "enable")];
    fields.extend(vrf.map(|vrf| ("vrf_name", vrf)));
    Phase::default()
        .set(format!("INTERFACE|{port}"), &fields)
        .applied(
            format!("INTF_TABLE:{port}"),
            &[("vrf_name", vrf.unwrap_or_default())],
        )
        .until(Sign::Port(port.to_string(), false, true))
}
