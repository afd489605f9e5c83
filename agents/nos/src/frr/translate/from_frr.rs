use std::net::Ipv4Addr;

use super::Routing;
use super::policies::{self, map_policy};
use crate::frr::model::{
    BgpInstance, BgpVrf, Family, FrrConfig, InterfaceName, Neighbour, ObjectName, PeerFamily,
    Remote, RemoteAs, VrfName,
};
use crate::model::{self, Bgp, BgpNeighbour, BgpNeighbours, PolicyName, PortName};

impl Routing {
    /// The meaning of a configuration that FRR has on a Linux switch. BGP is not intact if the
    /// configuration is another one than that of the meaning.
    #[must_use]
    pub fn from_frr(config: &FrrConfig) -> Self {
        Self::from_frr_with(config, &InterfaceName::loopback())
    }

    /// The same on a switch whose loopback has this name.
    #[must_use]
    pub fn from_frr_with(config: &FrrConfig, loopback: &InterfaceName) -> Self {
        let vnis = config.vrfs.iter();
        let mut routing = Self {
            policies: policies::from_frr(config),
            bgp: bgp(config),
            l3_vnis: vnis
                .filter_map(|(vrf, vni)| Some((name(*vrf)?, *vni)))
                .collect(),
        };
        let is_intact = routing
            .to_frr_with(loopback)
            .is_ok_and(|again| again == *config);
        if let Some(bgp) = &mut routing.bgp {
            bgp.is_intact = is_intact;
        }
        routing
    }
}

/// The name in the model. None of ours is too long: `Vrf` and ten digits are 13 bytes.
fn name(vrf: VrfName) -> Option<model::VrfName> {
    model::VrfName::new(&vrf.to_string()).ok()
}

fn bgp(config: &FrrConfig) -> Option<Bgp> {
    let default = config.bgp.get(&BgpVrf::Default);
    let instance = default.or_else(|| config.bgp.values().next())?;
    // FRR chooses an id where none is set, and may choose another one tomorrow.
    let router_id = instance.router_id.unwrap_or(Ipv4Addr::BROADCAST);
    let asn = proto_types::Asn(instance.asn.0.get());
    let mut bgp = Bgp::new(asn, router_id).ok()?;
    bgp.is_draining = instance.graceful_shutdown;
    for (vrf, instance) in &config.bgp {
        match vrf {
            BgpVrf::Default => bgp.underlay = neighbours(instance),
            BgpVrf::Tenant(vrf) => {
                bgp.vrfs.insert(name(*vrf)?, neighbours(instance));
            }
        }
    }
    Some(bgp)
}

fn neighbours(instance: &BgpInstance) -> BgpNeighbours {
    let all = instance.neighbours.iter();
    all.filter_map(|(interface, of)| {
        let port = PortName::new(interface.as_str()).ok()?;
        Some((port, neighbour(of)))
    })
    .collect()
}

fn neighbour(of: &Neighbour) -> BgpNeighbour {
    let remote_asn = match &of.remote {
        Remote::As(RemoteAs::Number(asn)) => Some(proto_types::Asn(asn.0.get())),
        Remote::As(RemoteAs::External | RemoteAs::Internal) | Remote::Group(_) => None,
    };
    BgpNeighbour {
        remote_asn,
        import: common(of, |family| family.route_map_in.as_ref()),
        export: common(of, |family| family.route_map_out.as_ref()),
        has_evpn: of.settings.families.evpn.activate,
    }
}

/// The route map that all families have which the neighbour exchanges. `None` if two differ: then
/// one is not filtered as it should be.
fn common(of: &Neighbour, map: impl Fn(&PeerFamily) -> Option<&ObjectName>) -> Option<PolicyName> {
    let families = &of.settings.families;
    let active = Family::ALL
        .into_iter()
        .filter(|family| *family != Family::Evpn || families.evpn.activate);
    let mut maps = active.map(|family| map(families.of(family)).map(map_policy));
    let first = maps.next()??;
    maps.all(|other| other.as_ref() == Some(&first))
        .then_some(first)
}
