//! The meaning of what the databases say.

use std::collections::BTreeMap;

use proto_wire_lldp::Mac;

use super::names::{MapUse, is_of_kernel, vlan_name, vlan_of};
use super::snapshot::Snapshot;
use crate::model::{
    Gateway, Membership, Mtu, Port, PortName, Segment, SwitchModel, Table, Tunnel, Vlan, Vrf,
    VrfName,
};
use crate::observation::{Observation, PortLink};
use crate::vni::Vni;

/// The table of a VRF whose number nobody has noted: none that is desired.
const NO_TABLE: u32 = 1;

/// An interface of a VLAN that is routed in part: a host in its segment that should be none.
struct HalfRouted;

impl Snapshot {
    /// The switch that the databases describe. `is_port` says which ports are the agent's.
    #[must_use]
    pub fn observation(&self, is_port: impl Fn(&str) -> bool) -> Observation {
        let mut out = Observation::default();
        let model = &mut out.model;
        model.vtep = self.vtep();
        // SONiC has no other order, and its VRFs fall back into no other one.
        model.is_l3mdev_first = true;
        model.segments = self.all_segments();
        model.vrfs = self.all_vrfs();
        let mac = self.field("DEVICE_METADATA|localhost", "mac");
        let mac = mac.and_then(parse_mac).unwrap_or_default();
        for (name, _) in self.rows("PORT|").filter(|(name, _)| is_port(name)) {
            let Ok(name) = PortName::new(name) else {
                continue;
            };
            let port = self.port(&name, &out.model);
            let key = format!("PORT_TABLE:{name}");
            let has_carrier = self.applied(&key, "oper_status") == Some("up");
            let oper_up = port.admin_up && has_carrier;
            out.links.insert(name.clone(), PortLink { mac, oper_up });
            out.model.ports.insert(name, port);
        }
        out
    }

    fn port(&self, name: &PortName, model: &SwitchModel) -> Port {
        let (desired, applied) = (format!("PORT|{name}"), format!("PORT_TABLE:{name}"));
        let value = |field| {
            let applied = self.applied(&applied, field);
            applied.or_else(|| self.field(&desired, field))
        };
        let mtu = value("mtu").and_then(|mtu| mtu.parse().ok());
        Port {
            admin_up: value("admin_status") == Some("up"),
            mtu: mtu.and_then(|mtu| Mtu::new(mtu).ok()),
            membership: self.place(name.as_ref(), model),
        }
    }

    /// The place of a port, as far as configuration, managers and ASIC agree. Otherwise it is
    /// nobody's and not quarantined: what is on its way could come into effect at any time.
    fn place(&self, port: &str, model: &SwitchModel) -> Membership {
        let is_bridged = self.asic.bridged.contains(port);
        let is_routed = self.asic.routed.contains(port);
        let applied = |key: &str, field| self.applied(key, field).unwrap_or_default();
        let interface = format!("INTF_TABLE:{port}");
        let place = self.configured(port, model);
        let agrees = match &place {
            Membership::Quarantine => {
                !is_bridged && !is_routed && !self.appl.contains_key(&interface)
            }
            Membership::Segment { is_private, .. } => {
                let is_isolated = self.asic.isolated.contains(port);
                let vlan = self.memberships(port).next().and_then(member_vlan);
                let key = format!("VLAN_MEMBER_TABLE:{}:{port}", vlan.unwrap_or_default());
                is_bridged
                    && !is_routed
                    && is_isolated == *is_private
                    && !self.half_isolated.contains(port)
                    && applied(&key, "tagging_mode") == "untagged"
            }
            Membership::Routed(vrf) => {
                is_routed && !is_bridged && applied(&interface, "vrf_name") == vrf.as_ref()
            }
            Membership::Underlay => {
                is_routed && !is_bridged && applied(&interface, "vrf_name").is_empty()
            }
            Membership::Foreign(_) => true,
        };
        if agrees {
            return place;
        }
        Membership::Foreign("unconfirmed".to_owned())
    }

    fn configured(&self, port: &str, model: &SwitchModel) -> Membership {
        let interface = self.config.get(&format!("INTERFACE|{port}"));
        let mut members = self.memberships(port);
        match (members.next(), members.next(), interface) {
            (None, _, None) => Membership::Quarantine,
            (Some(key), None, None) => self.member(port, key, model),
            (None, _, Some(row)) => {
                let has_link_local = row
                    .get("ipv6_use_link_local_only")
                    .is_some_and(|on| on == "enable");
                match row.get("vrf_name").filter(|name| !name.is_empty()) {
                    None if has_link_local => Membership::Underlay,
                    None => Membership::Foreign("INTERFACE".to_owned()),
                    Some(vrf) => {
                        let known = VrfName::new(vrf).ok();
                        let known = known.filter(|vrf| model.vrfs.contains_key(vrf));
                        let known = known.filter(|_| has_link_local).map(Membership::Routed);
                        known.unwrap_or_else(|| Membership::Foreign(vrf.clone()))
                    }
                }
            }
            _ => Membership::Foreign("several places".to_owned()),
        }
    }

    fn member(&self, port: &str, key: &str, model: &SwitchModel) -> Membership {
        let vlan = member_vlan(key);
        let vni = vlan
            .and_then(vlan_of)
            .and_then(|vlan| self.segments().get(&vlan).copied());
        let is_plain = self.field(key, "tagging_mode") == Some("untagged");
        match vni.filter(|vni| is_plain && model.segments.contains_key(vni)) {
            Some(vni) => Membership::Segment {
                vni,
                is_private: self.grouped().contains(port),
            },
            None => Membership::Foreign(vlan.unwrap_or("a port channel").to_owned()),
        }
    }

    fn all_segments(&self) -> BTreeMap<Vni, Segment> {
        let mut out: BTreeMap<Vni, Segment> = BTreeMap::new();
        let tunnel = self.tunnel().unwrap_or_default();
        for map in self.maps() {
            let vlan = match map.of {
                Some(MapUse::Segment) => None,
                Some(MapUse::Vlan) => Some(map.vlan),
                Some(MapUse::Vrf) | None => continue,
            };
            let is_alone = self
                .maps()
                .filter(|of| of.vlan == map.vlan || of.vni == map.vni)
                .count()
                == 1;
            let is_ours =
                map.is_local || map.key.starts_with(&format!("VXLAN_TUNNEL_MAP|{tunnel}|"));
            let mut segment = self.segment(map.vlan, vlan, is_alone && is_ours);
            if map.is_local {
                segment.tunnel = Tunnel::Absent;
            }
            out.entry(map.vni).or_insert(segment);
        }
        out
    }

    fn segment(&self, on: Vlan, vlan: Option<Vlan>, is_mapped: bool) -> Segment {
        let name = vlan_name(on);
        let key = format!("VLAN|{name}");
        let mtu = self.field(&key, "mtu").and_then(|mtu| mtu.parse().ok());
        let mtu = mtu.and_then(|mtu| Mtu::new(mtu).ok());
        let gateway = self.gateway(&name);
        let is_intact = is_mapped
            && mtu.is_some()
            && gateway.is_ok()
            && self.field(&key, "vlanid") == Some(on.to_string().as_str())
            && self.field(&key, "admin_status") == Some("up")
            && self.is_made(&format!("VLAN_TABLE|{name}"));
        Segment {
            vlan,
            gateway: gateway.unwrap_or(None),
            is_intact,
            ..Segment::new(mtu.unwrap_or(Mtu::ETHERNET))
        }
    }

    fn gateway(&self, vlan: &str) -> Result<Option<Gateway>, HalfRouted> {
        let key = format!("VLAN_INTERFACE|{vlan}");
        let mut addresses = self.addresses("VLAN_INTERFACE", vlan).peekable();
        let Some(row) = self.config.get(&key) else {
            return addresses.peek().map_or(Ok(None), |_| Err(HalfRouted));
        };
        let is_anycast = row
            .get("static_anycast_gateway")
            .is_some_and(|on| on == "true");
        let vrf = row.get("vrf_name").and_then(|name| VrfName::new(name).ok());
        let vrf = vrf.filter(|vrf| vrf.is_managed() && is_anycast);
        let addresses: Result<Vec<_>, _> = addresses
            .map(|(_, address)| address.parse::<ipnet::IpNet>())
            .collect();
        let is_applied = {
            let interface = format!("INTF_TABLE:{vlan}");
            let mut keys = self.addresses("VLAN_INTERFACE", vlan);
            let vrf = vrf.as_ref().map_or("", AsRef::as_ref);
            self.applied(&interface, "vrf_name") == Some(vrf)
                && keys.all(|(_, address)| {
                    let key = format!("{interface}:{address}");
                    is_of_kernel(address) || self.appl.contains_key(&key)
                })
        };
        let gateway = vrf.zip(addresses.ok()).filter(|_| is_applied);
        let gateway = gateway.and_then(|(vrf, addresses)| Gateway::new(vrf, addresses).ok());
        gateway.map(Some).ok_or(HalfRouted)
    }

    fn all_vrfs(&self) -> BTreeMap<VrfName, Vrf> {
        let vrfs = self.rows("VRF|").filter_map(|(name, _)| {
            let name = VrfName::new(name).ok().filter(VrfName::is_managed)?;
            let vrf = self.vrf(&name)?;
            Some((name, vrf))
        });
        vrfs.collect()
    }

    fn vrf(&self, name: &VrfName) -> Option<Vrf> {
        let key = format!("VRF|{name}");
        let vni = self.field(&key, "vni").and_then(|vni| vni.parse().ok());
        let l3_vni = vni.and_then(|vni| Vni::new(vni).ok());
        let noted = self.field(&format!("METALMESH_VRF|{name}"), "table");
        let noted = noted.and_then(|table| Table::new(table.parse().ok()?).ok());
        let is_carried = l3_vni.is_none_or(|vni| {
            let mut maps = self.maps().filter(|map| map.vni == vni);
            let map = maps.next().filter(|map| map.of == Some(MapUse::Vrf));
            map.is_some_and(|map| self.is_carried(name, map.vlan)) && maps.next().is_none()
        });
        Some(Vrf {
            l3_vni,
            table: noted.or_else(|| Table::new(NO_TABLE).ok())?,
            has_unreachable_default: self.field(&key, "fallback") != Some("true"),
            is_intact: noted.is_some()
                && is_carried
                && self.is_made(&format!("VRF_OBJECT_TABLE|{name}")),
        })
    }

    /// `true` if a VLAN carries the routes of a VRF.
    fn is_carried(&self, name: &VrfName, vlan: Vlan) -> bool {
        let vlan = vlan_name(vlan);
        let key = format!("VLAN_INTERFACE|{vlan}");
        self.is_made(&format!("VLAN_TABLE|{vlan}"))
            && self.field(&key, "vrf_name") == Some(name.as_ref())
            && self.applied(&format!("INTF_TABLE:{vlan}"), "vrf_name") == Some(name.as_ref())
            && self.addresses("VLAN_INTERFACE", &vlan).next().is_none()
    }
}

/// The VLAN in the key of a membership. `None` for that of a port channel.
pub(super) fn member_vlan(key: &str) -> Option<&str> {
    let (vlan, _) = key.strip_prefix("VLAN_MEMBER|")?.split_once('|')?;
    Some(vlan)
}

/// A MAC address in the spelling of SONiC.
pub(super) fn parse_mac(text: &str) -> Option<Mac> {
    let bytes: Option<Vec<u8>> = text
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect();
    bytes?.try_into().ok()
}
