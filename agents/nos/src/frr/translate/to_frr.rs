use std::num::NonZeroU32;

use super::policies::{self, evpn_object, object};
use super::{LOOPBACK_MAP, Routing, RoutingError, TENANT_PREFIXES_MAX, TIMERS};
use crate::frr::model::{
    Action, Asn, BgpInstance, BgpVrf, FrrConfig, InterfaceName, Neighbour, ObjectName, PeerFamily,
    PeerSettings, PerIp, Redistribute, Remote, RemoteAs, RouteMapEntry, RouteMapKey, Timers,
    VrfName,
};
use crate::model::{self, Bgp, BgpNeighbour, BgpNeighbours, PolicyName, PortName};

impl Routing {
    /// The configuration of FRR that has this meaning on a Linux switch.
    ///
    /// # Errors
    /// The first object that FRR cannot have.
    pub fn to_frr(&self) -> Result<FrrConfig, RoutingError> {
        self.to_frr_with(&InterfaceName::loopback())
    }

    /// The configuration of FRR that has this meaning on a switch whose loopback has this name.
    ///
    /// # Errors
    /// The first object that FRR cannot have.
    pub fn to_frr_with(&self, loopback: &InterfaceName) -> Result<FrrConfig, RoutingError> {
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
        config.has_zebra_settings = true;
        let (key, mut entry) = loopback_map();
        entry.match_interface = Some(loopback.clone());
        config.route_maps.insert(key, entry);
        for (vrf, neighbours) in bgp.instances() {
            let place = match vrf {
                None => Some(BgpVrf::Default),
                Some(vrf) => managed(vrf).map(BgpVrf::Tenant),
            };
            if let Some(place) = place {
                let mut made = instance(bgp, place, neighbours)?;
                self.filter_evpn(&mut made, neighbours)?;
                config.bgp.insert(place, made);
            }
        }
        Ok(config)
    }

    /// Filters EVPN routes by the maps that are for them alone, where there are such.
    fn filter_evpn(
        &self,
        made: &mut BgpInstance,
        neighbours: &BgpNeighbours,
    ) -> Result<(), RoutingError> {
        let of_evpn = |name: &Option<PolicyName>| {
            let name = name.as_ref();
            let map = name.and_then(|name| Some((name, self.policies.route_maps.get(name)?)));
            let split = map.filter(|(_, map)| policies::has_evpn_rule(map));
            split.map(|(name, _)| evpn_object(name)).transpose()
        };
        for (port, settings) in neighbours.iter().filter(|(_, of)| of.has_evpn) {
            let Some(neighbour) = made.neighbours.get_mut(&interface(port)?) else {
                continue;
            };
            let family = &mut neighbour.settings.families.evpn;
            if let Some(import) = of_evpn(&settings.import)? {
                family.route_map_in = Some(import);
            }
            if let Some(export) = of_evpn(&settings.export)? {
                family.route_map_out = Some(export);
            }
        }
        Ok(())
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
    (key, RouteMapEntry::new(Action::Permit))
}

fn instance(
    bgp: &Bgp,
    vrf: BgpVrf,
    neighbours: &BgpNeighbours,
) -> Result<BgpInstance, RoutingError> {
    let mut made = BgpInstance::new(asn(bgp.asn())?);
    made.router_id = Some(bgp.router_id());
    made.multipath_relax = true;
    made.graceful_shutdown = bgp.is_draining;
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
    for (port, settings) in neighbours {
        let neighbour = neighbour(is_default, settings)?;
        made.neighbours.insert(interface(port)?, neighbour);
    }
    Ok(made)
}

/// Checks that FRR can have a neighbour on a port.
///
/// # Errors
/// The part of it that FRR cannot have.
pub(crate) fn check_neighbour(port: &PortName, of: &BgpNeighbour) -> Result<(), RoutingError> {
    interface(port)?;
    neighbour(true, of).map(drop)
}

fn interface(port: &PortName) -> Result<InterfaceName, RoutingError> {
    let name = InterfaceName::new(port.as_ref());
    name.map_err(|_| RoutingError::Interface(port.clone()))
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
