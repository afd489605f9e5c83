//! Names and addresses of the back-end's devices.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

use super::link::{Kind, Link};
use crate::vni::Vni;

pub(super) const BRIDGE_PREFIX: &str = "mmb";
pub(super) const TUNNEL_PREFIX: &str = "mmx";
pub(super) const ROUTED_PREFIX: &str = "mmr";
/// Name of the bridge of quarantined ports.
pub(super) const QUARANTINE: &str = "mmq";
/// Name of the loopback device.
pub(super) const LOOPBACK: &str = "lo";

/// MAC address of gateways, the same on every leaf, so that a machine that moves keeps its
/// neighbour entry: the first one of VRRP (RFC 5798 §7.3), which no card has.
pub(super) const GATEWAY_MAC: [u8; 6] = [0, 0, 0x5e, 0, 1, 1];
/// Link-local address of gateways with IPv6, of [`GATEWAY_MAC`] (RFC 4291 Appendix A). The kernel
/// asks for the hosts of forwarded packets from a link-local address, and without one it does not
/// ask at all.
pub(super) const GATEWAY_LINK_LOCAL: IpNet = IpNet::V6(Ipv6Net::new_assert(
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0x0200, 0x5eff, 0xfe00, 0x0101),
    64,
));

/// Name of a segment's bridge.
pub(super) fn bridge_name(vni: Vni) -> String {
    format!("{BRIDGE_PREFIX}{vni}")
}

/// Name of the bridge that carries a VRF's L3 VNI.
pub(super) fn routed_name(vni: Vni) -> String {
    format!("{ROUTED_PREFIX}{vni}")
}

/// Name of the tunnel device of a VNI.
pub(super) fn tunnel_name(vni: Vni) -> String {
    format!("{TUNNEL_PREFIX}{vni}")
}

/// The segment of a bridge. `None` if it is none of ours.
pub(super) fn segment_of(bridge: &Link) -> Option<Vni> {
    vni_of(bridge, BRIDGE_PREFIX)
}

/// The L3 VNI of a bridge. `None` if it is none of ours.
pub(super) fn l3_vni_of(bridge: &Link) -> Option<Vni> {
    vni_of(bridge, ROUTED_PREFIX)
}

fn vni_of(bridge: &Link, prefix: &str) -> Option<Vni> {
    let number = bridge.name.strip_prefix(prefix)?.parse().ok()?;
    let vni = Vni::new(number).ok()?;
    // A number with leading zeros is somebody else's.
    let is_ours = bridge.kind == Kind::Bridge && format!("{prefix}{vni}") == bridge.name;
    is_ours.then_some(vni)
}

/// `true` for the bridge of quarantined ports. It stays down: a bridge that is down forwards
/// nothing and passes nothing to the switch but link-local frames, which LLDP needs.
pub(super) fn is_quarantine(link: &Link) -> bool {
    link.name == QUARANTINE && link.kind == Kind::Bridge && !link.up
}

/// MAC address by which other switches reach the VRFs of this one (router MAC, RFC 9135 §2):
/// locally administered, of its own for each tunnel address.
pub(super) fn router_mac(vtep: IpAddr) -> [u8; 6] {
    let [a, b, c, d] = match vtep {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(address) => {
            let [.., a, b, c, d] = address.octets();
            [a, b, c, d]
        }
    };
    [0x02, 0x4d, a, b, c, d]
}
