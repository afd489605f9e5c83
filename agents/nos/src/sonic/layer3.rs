//! The writes of VRFs and of the tunnel's address.

use std::net::IpAddr;

use super::error::SonicError;
use super::names::{LOOPBACK, MapUse, NVO, TUNNEL, vlan_name};
use super::phase::{Phase, Sign};
use super::rows::Row;
use super::steps::{Phases, Planner};
use crate::interpret::StepError;
use crate::model::{Mtu, Tunnel, Vrf, VrfName};
use crate::problem::SwitchObject;
use crate::vni::Vni;

/// MTU of the VLAN of an L3 VNI, bytes: the largest packet that a machine sends.
const L3_MTU: u32 = 9000;

impl Planner<'_> {
    /// The VRF first, then what carries its routes, then the VNI: SONiC maps one only to a VLAN
    /// that is mapped already.
    pub(super) fn ensure_vrf(&self, name: &VrfName, vrf: Vrf) -> Phases {
        let table = vrf.table.get().to_string();
        let made = Phase::default()
            .set(
                format!("METALMESH_VRF|{name}"),
                &[("table", table.as_str())],
            )
            .set(format!("VRF|{name}"), &[("fallback", "false")])
            .applied(format!("VRF_TABLE:{name}"), &[("fallback", "false")])
            .until(Sign::Made(format!("VRF_OBJECT_TABLE|{name}")));
        let mut phases = vec![made];
        let Some(vni) = vrf.l3_vni else {
            return Ok(phases);
        };
        self.check_vni(vni)?;
        let vlan = match self.carrier(vni) {
            Some(vlan) => vlan,
            None => self.free_vlan()?,
        };
        let interface = vlan_name(vlan);
        let key = format!("VLAN_INTERFACE|{interface}");
        let seen = self.seen.field(&key, "vrf_name");
        let has_address = self
            .seen
            .addresses("VLAN_INTERFACE", &interface)
            .next()
            .is_some();
        let is_gateway = self.seen.field(&key, "static_anycast_gateway").is_some();
        if has_address || is_gateway || seen.is_some_and(|seen| seen != name.as_ref()) {
            phases.extend(self.leave_interface(&interface));
        }
        phases.push(self.mapped(vlan, Mtu::nearest(L3_MTU), MapUse::Vrf, vni, Tunnel::Open)?);
        let of = [("vrf_name", name.as_ref())];
        let carried = Phase::default().set(key, &of);
        phases.push(carried.applied(format!("INTF_TABLE:{interface}"), &of));
        phases.push(with_vni(name.as_ref(), &vni.to_string()));
        Ok(phases)
    }

    /// In reverse: the VNI, what carries the routes, the VRF.
    pub(super) fn remove_vrf(&self, name: &VrfName) -> Phases {
        let key = format!("VRF|{name}");
        if !self.seen.config.contains_key(&key) {
            return Ok(Vec::new());
        }
        let vni = self
            .seen
            .field(&key, "vni")
            .and_then(|vni| vni.parse().ok());
        let vni = vni.and_then(|vni| Vni::new(vni).ok());
        let carrier = vni.and_then(|vni| Some((vni, self.carrier(vni)?)));
        let carrier_key = carrier.map(|(_, vlan)| format!("VLAN_INTERFACE|{}", vlan_name(vlan)));
        let mut phases = Vec::new();
        for key in self.interfaces_in(name) {
            let vlan = key.strip_prefix("VLAN_INTERFACE|");
            match vlan.filter(|vlan| self.is_left_behind(vlan)) {
                Some(vlan) => phases.extend(self.leave_interface(vlan)),
                None if Some(key) == carrier_key.as_deref() => {}
                None => return Err(StepError::InUse(SwitchObject::Vrf(name.clone())).into()),
            }
        }
        if vni.is_some() {
            phases.push(with_vni(name.as_ref(), "0"));
        }
        if let Some((vni, vlan)) = carrier {
            phases.extend(self.leave_interface(&vlan_name(vlan)));
            phases.extend(self.unmapped(vlan, vni));
        }
        let gone = Phase::default()
            .remove(key)
            .until(Sign::NotApplied(format!("VRF_TABLE:{name}")))
            .until(Sign::NotMade(format!("VRF_OBJECT_TABLE|{name}")));
        phases.push(gone.remove(format!("METALMESH_VRF|{name}")));
        Ok(phases)
    }

    /// Keys of the interfaces in a VRF.
    fn interfaces_in(&self, name: &VrfName) -> impl Iterator<Item = &str> {
        let is_in = |key: &str, row: &Row| {
            let table = key.split('|').next();
            let vrf = row.get("vrf_name").map(String::as_str);
            table.is_some_and(|table| table.ends_with("INTERFACE")) && vrf == Some(name.as_ref())
        };
        let rows = self.seen.config.iter();
        rows.filter(move |(key, row)| is_in(key, row))
            .map(|(key, _)| key.as_str())
    }

    /// SONiC keeps a tunnel's source for ever: another one needs another tunnel, without maps.
    pub(super) fn set_vtep(&self, address: IpAddr) -> Phases {
        let mut phases = Vec::new();
        let tunnel = self.seen.tunnel().unwrap_or(TUNNEL);
        let nvo = self
            .seen
            .rows("VXLAN_EVPN_NVO|")
            .next()
            .map_or(NVO, |(name, _)| name);
        let source = self.seen.source();
        let moves = source.is_some_and(|source| source != address);
        let vnis = self.vnis_of_vrfs();
        if moves {
            let mut maps = self.seen.maps();
            if let Some(other) = maps.find(|map| map.of.is_none() && !map.is_local) {
                return Err(SonicError::Occupied(other.key.to_owned()).into());
            }
            phases.extend(vnis.iter().map(|(name, _)| with_vni(name, "0")));
            phases.push(self.remove_maps(|map| !map.is_local));
            let gone = Phase::default().remove(format!("VXLAN_EVPN_NVO|{nvo}"));
            phases.push(gone.until(Sign::NotApplied(format!("VXLAN_EVPN_NVO_TABLE:{nvo}"))));
            let mut gone = Phase::default().remove(format!("VXLAN_TUNNEL|{tunnel}"));
            for (key, _) in source
                .into_iter()
                .flat_map(|source| self.loopback_of(source))
            {
                gone = gone.remove(key);
            }
            phases.push(gone.until(Sign::NotApplied(format!("VXLAN_TUNNEL_TABLE:{tunnel}"))));
        }
        let (text, prefix) = (address.to_string(), ipnet::IpNet::from(address));
        let source = [("src_ip", text.as_str())];
        let made = Phase::default()
            .set(format!("LOOPBACK_INTERFACE|{LOOPBACK}"), &[])
            .set(format!("LOOPBACK_INTERFACE|{LOOPBACK}|{prefix}"), &[])
            .set(format!("VXLAN_TUNNEL|{tunnel}"), &source);
        phases.push(made.applied(format!("VXLAN_TUNNEL_TABLE:{tunnel}"), &source));
        let of = [("source_vtep", tunnel)];
        let made = Phase::default().set(format!("VXLAN_EVPN_NVO|{nvo}"), &of);
        phases.push(made.applied(format!("VXLAN_EVPN_NVO_TABLE:{nvo}"), &of));
        if moves {
            phases.push(self.maps_again());
            phases.extend(vnis.iter().map(|(name, vni)| with_vni(name, vni)));
        }
        Ok(phases)
    }

    fn maps_again(&self) -> Phase {
        let mut again = Phase::default();
        for map in self.seen.maps().filter(|map| !map.is_local) {
            let (vlan, vni) = (vlan_name(map.vlan), map.vni.to_string());
            let fields = [("vlan", vlan.as_str()), ("vni", vni.as_str())];
            let rest = map.key.trim_start_matches("VXLAN_TUNNEL_MAP|");
            let applied = format!("VXLAN_TUNNEL_MAP_TABLE:{}", rest.replace('|', ":"));
            again = again.set(map.key, &fields).applied(applied, &fields);
        }
        again
    }

    fn vnis_of_vrfs(&self) -> Vec<(String, String)> {
        let vrfs = self.seen.rows("VRF|");
        let vnis = vrfs.filter_map(|(name, row)| Some((name.to_owned(), row.get("vni")?.clone())));
        vnis.filter(|(_, vni)| vni != "0").collect()
    }
}

fn with_vni(vrf: &str, vni: &str) -> Phase {
    let fields = [("vni", vni)];
    Phase::default()
        .set(format!("VRF|{vrf}"), &fields)
        .applied(format!("VRF_TABLE:{vrf}"), &fields)
}
