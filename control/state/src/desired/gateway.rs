//! Segments of bridged machines: their VNIs and their anycast gateways.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use proto_types::Vni;

use crate::network::entity::VRF_MAX;

/// Added to the L3 VNI of a tenant's VRF: the sum is the VNI of the segment of its bridged
/// machines. VRF ids of tenants are below.
const SEGMENT_BASE: u32 = VRF_MAX + 1;
/// The gateway that installed systems route through, on link.
const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// The same of IPv6.
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
/// Prefix length of link-local addresses.
const LINK_V6: u8 = 64;

/// The anycast gateway of a segment: the same on every switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayIntent {
    /// L3 VNI of the VRF that routes the segment.
    pub vrf: Vni,
    /// Addresses with the lengths of their prefixes.
    pub addresses: BTreeSet<IpNet>,
}

impl GatewayIntent {
    /// The gateway of a segment whose hosts have addresses of these prefixes.
    ///
    /// Hosts route through link-local addresses. Beside them the gateway has the network address
    /// of each prefix, which no host gets, so that the VRF knows the prefix. In IPv6 that is the
    /// subnet-router anycast address (RFC 4291 §2.6.1). `None` without prefixes.
    pub(super) fn new<'a>(vrf: Vni, prefixes: impl IntoIterator<Item = &'a IpNet>) -> Option<Self> {
        let mut addresses = BTreeSet::new();
        for prefix in prefixes {
            addresses.insert(prefix.trunc());
            addresses.insert(match prefix {
                IpNet::V4(_) => IpNet::from(std::net::IpAddr::from(GATEWAY_V4)),
                IpNet::V6(_) => IpNet::new_assert(GATEWAY_V6.into(), LINK_V6),
            });
        }
        (!addresses.is_empty()).then_some(Self { vrf, addresses })
    }
}

/// The segment of the bridged machines of a VRF. `None` if no VNI is left for it.
pub fn bridged_segment(vrf: Vni) -> Option<Vni> {
    let is_below = vrf != Vni::NONE && vrf.get() < SEGMENT_BASE;
    let vni = is_below.then(|| SEGMENT_BASE + vrf.get())?;
    Vni::try_from(vni).ok()
}
