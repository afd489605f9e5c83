//! VRFs and gateways in a view.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::link::{Kind, Link};
use super::names::{
    GATEWAY_LINK_LOCAL, GATEWAY_MAC, l3_vni_of, routed_name, router_mac, tunnel_name,
};
use super::view::View;
use crate::frr::Routing;
use crate::model::{Gateway, Table, Vrf, VrfName};
use crate::vni::Vni;

/// MTU of the devices of an L3 VNI, bytes: the largest packet that a machine sends. The tunnel
/// adds 50 (70 over IPv6) bytes, for which links of the underlay with 9216 have room.
pub(super) const L3_MTU: u32 = 9000;

/// A bridge that is routed in part: a host in its segment that should be none.
pub(super) struct HalfRouted;

/// The addresses of a gateway's bridge.
pub(super) fn gateway_addresses(gateway: &Gateway) -> BTreeSet<IpNet> {
    let own = gateway.addresses().iter().copied();
    let has_v6 = gateway.addresses().iter().any(|own| own.addr().is_ipv6());
    own.chain(has_v6.then_some(GATEWAY_LINK_LOCAL)).collect()
}

/// The addresses of a gateway whose bridge has these. Without the link-local one it has none of IPv6,
/// so that it gets them, and the others stay.
fn told(seen: impl Iterator<Item = IpNet> + Clone) -> impl Iterator<Item = IpNet> {
    let has_v6 = seen.clone().any(|address| address == GATEWAY_LINK_LOCAL);
    seen.filter(move |address| {
        *address != GATEWAY_LINK_LOCAL && (has_v6 || address.addr().is_ipv4())
    })
}

impl View {
    /// The gateway that a segment's bridge is. `None` if it is none.
    pub(super) fn gateway(&self, bridge: &Link) -> Result<Option<Gateway>, HalfRouted> {
        let Some(layer3) = &self.layer3 else {
            return Ok(None);
        };
        let addresses = layer3.addresses(bridge.index);
        let Some(master) = bridge.controller else {
            return if addresses.is_empty() {
                Ok(None)
            } else {
                Err(HalfRouted)
            };
        };
        let vrf = self
            .by_index(master)
            .filter(|l| matches!(l.kind, Kind::Vrf { .. }));
        let vrf = vrf
            .and_then(|vrf| VrfName::new(&vrf.name).ok())
            .ok_or(HalfRouted)?;
        let seen = addresses.iter().map(|address| address.address);
        let gateway = Gateway::new(vrf, told(seen)).map_err(|_| HalfRouted)?;
        let is_ours = bridge.mac == GATEWAY_MAC && bridge.routes;
        is_ours.then_some(Some(gateway)).ok_or(HalfRouted)
    }

    /// The VRFs by name. `routing` is what FRR keeps of them.
    pub(super) fn vrfs<'a>(
        &'a self,
        routing: &'a Routing,
        vtep: Option<IpAddr>,
    ) -> impl Iterator<Item = (VrfName, Vrf)> + 'a {
        self.links.iter().filter_map(move |link| {
            let name = VrfName::new(&link.name).ok()?;
            let Kind::Vrf { table } = link.kind else {
                return None;
            };
            let told = routing.l3_vnis.get(&name).copied();
            let vrf = self.vrf(link, Table::new(table).ok()?, told, vtep);
            let is_intact = vrf.is_intact || !name.is_managed();
            Some((name, Vrf { is_intact, ..vrf }))
        })
    }

    fn vrf(&self, link: &Link, table: Table, told: Option<Vni>, vtep: Option<IpAddr>) -> Vrf {
        let bridges = self
            .links
            .iter()
            .filter(|l| l.controller == Some(link.index));
        let found: BTreeSet<Vni> = bridges.filter_map(l3_vni_of).collect();
        // The kernel's is the one that packets take.
        let l3_vni = told
            .filter(|told| found.is_empty() || found.contains(told))
            .or_else(|| found.first().copied());
        let carried = found.len() <= 1
            && l3_vni == told
            && l3_vni.is_none_or(|vni| self.is_carried(vni, link.index, vtep));
        let layer3 = self.layer3.as_ref();
        Vrf {
            l3_vni,
            table,
            has_unreachable_default: layer3.is_some_and(|l3| l3.is_guarded(table.get())),
            is_intact: link.up && link.routes && carried,
        }
    }

    /// `true` if the devices of an L3 VNI have our settings.
    fn is_carried(&self, vni: Vni, vrf: u32, vtep: Option<IpAddr>) -> bool {
        let bridge = self.by_name(&routed_name(vni));
        let tunnel = self.by_name(&tunnel_name(vni));
        let (Some(bridge), Some(tunnel), Some(address)) = (bridge, tunnel, vtep) else {
            return false;
        };
        bridge.up
            && bridge.routes
            && !bridge.has_vlan
            && bridge.controller == Some(vrf)
            && bridge.mac == router_mac(address)
            && tunnel.up
            && tunnel.controller == Some(bridge.index)
            && tunnel.is_tunnel(vni.get(), vtep)
            && tunnel.is_evpn_tunnel()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> BTreeSet<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_gateway_with_ipv6_has_a_link_local_address() {
        let (v4, v6, local) = (
            "10.1.0.254/24",
            "2001:db8:1::fe/64",
            "fe80::200:5eff:fe00:101/64",
        );
        for (own, on_the_bridge) in [
            (&[v4][..], &[v4][..]),
            (&[v6][..], &[v6, local][..]),
            (&[v4, v6][..], &[v4, v6, local][..]),
        ] {
            let vrf = VrfName::new("Vrf27").unwrap();
            let gateway = Gateway::new(vrf, nets(own)).unwrap();
            let expected = nets(on_the_bridge);
            assert_eq!(gateway_addresses(&gateway), expected);
            assert_eq!(
                told(expected.iter().copied()).collect::<BTreeSet<_>>(),
                nets(own)
            );
        }
        let without = nets(&[v4, v6]);
        assert_eq!(
            told(without.iter().copied()).collect::<BTreeSet<_>>(),
            nets(&[v4])
        );
    }
}
