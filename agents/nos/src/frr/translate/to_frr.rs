use std::num::NonZeroU32;

use super::policies::{self, object};
use super::{LOOPBACK_MAP, Routing, RoutingError, TENANT_PREFIXES_MAX, TIMERS};
use crate::frr::model::{
    Action, Asn, BgpInstance, BgpVrf, FrrConfig, InterfaceName, Neighbour, ObjectName, PeerFamily,
    PeerSettings, PerIp, Redistribute, Remote, RemoteAs, RouteMapEntry, RouteMapKey, Timers,
    VrfName,
};
use crate::model::{self, Bgp, BgpNeighbour, BgpNeighbours, Peer};

impl Routing {
    /// The configuration of FRR that has this meaning.
    ///
    /// # Errors
    /// The first object that FRR cannot have.
    pub fn to_frr(&self) -> Result<FrrConfig, RoutingError> {
        let mut config = FrrConfig::default();
        policies::to_frr(&self.policies, &mut config)?;
        let vnis = self.l3_vnis.iter();
        config.vrfs = vnis
            .filter_map(|(name, vni)| Some((managed(name)?, *vni)))
            .collect();
        let Some(bgp) = &self.bgp else {
            return Ok(config);
        };
        config.router_id = Some(bgp.router_id());
        config.is_in_turn = true;
        let (key, entry) = loopback_map();
        config.route_maps.insert(key, entry);
        for (vrf, neighbours) in bgp.instances() {
            let place = match vrf {
                None => Some(BgpVrf::Default),
                Some(vrf) => managed(vrf).map(BgpVrf::Tenant),
            };
            if let Some(place) = place {
                config.bgp.insert(place, instance(bgp, place, neighbours)?);
            }
        }
        Ok(config)
    }
}

/// A VRF's name in FRR. `None` if it is somebody else's.
fn managed(name: &model::VrfName) -> Option<VrfName> {
    VrfName::new(name.as_ref()).ok()
}

fn asn(asn: proto_types::Asn) -> Result<Asn, RoutingError> {
    let number = NonZeroU32::new(asn.0);
    number.map(Asn).ok_or(RoutingError::Asn(asn.0))
}

#[expect(clippy::expect_used, reason = "constants")]
fn loopback_map() -> (RouteMapKey, RouteMapEntry) {
    let key = RouteMapKey {
        map: ObjectName::new(LOOPBACK_MAP).expect("a name of ours"),
        sequence: 10,
    };
    let mut entry = RouteMapEntry::new(Action::Permit);
    entry.match_interface = InterfaceName::new("lo").ok();
    (key, entry)
}

fn instance(
    bgp: &Bgp,
    vrf: BgpVrf,
    neighbours: &BgpNeighbours,
) -> Result<BgpInstance, RoutingError> {
    let mut made = BgpInstance::new(asn(bgp.asn())?);
    made.router_id = Some(bgp.router_id());
    made.multipath_relax = true;
    let is_default = vrf == BgpVrf::Default;
    let both = |redistribute: Redistribute| PerIp {
        ipv4: redistribute.clone(),
        ipv6: redistribute,
    };
    if is_default {
        made.advertise_all_vni = true;
        // Not every connected route: the default VRF has the management network as well.
        made.redistribute = both(Redistribute::Filtered(loopback_map().0.map));
    } else {
        made.redistribute = both(Redistribute::Connected);
        made.advertise = PerIp {
            ipv4: true,
            ipv6: true,
        };
    }
    for (peer, settings) in neighbours {
        let interface = match peer {
            Peer::Interface(port) => InterfaceName::new(port.as_ref())
                .map_err(|_| RoutingError::Interface(port.clone()))?,
            Peer::Address(address) => return Err(RoutingError::Address(*address)),
        };
        let neighbour = neighbour(is_default, settings)?;
        made.neighbours.insert(interface, neighbour);
    }
    Ok(made)
}

fn neighbour(is_default: bool, of: &BgpNeighbour) -> Result<Neighbour, RoutingError> {
    let remote = match of.remote_asn {
        None => RemoteAs::External,
        Some(number) => RemoteAs::Number(asn(number)?),
    };
    let family = PeerFamily {
        activate: true,
        route_map_in: of.import.as_ref().map(object).transpose()?,
        route_map_out: of.export.as_ref().map(object).transpose()?,
        ..PeerFamily::default()
    };
    let (keepalive, hold) = TIMERS;
    let mut settings = PeerSettings {
        timers: Timers::new(keepalive, hold),
        ..PeerSettings::default()
    };
    let unicast = PeerFamily {
        maximum_prefix: (!is_default).then_some(TENANT_PREFIXES_MAX),
        ..family.clone()
    };
    settings.families.ipv4 = unicast.clone();
    settings.families.ipv6 = unicast;
    if of.has_evpn {
        settings.families.evpn = family;
    }
    Ok(Neighbour {
        remote: Remote::As(remote),
        settings,
    })
}
