//! Checks that need the whole configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use thiserror::Error;

use super::config::FrrConfig;
use super::family::Family;
use super::instance::{BgpInstance, Redistribute};
use super::name::ObjectName;
use super::peer::Remote;
use super::peer_settings::PeerSettings;
use super::route_map::RouteMapKey;
use super::vrf::{BgpVrf, VrfName};
use crate::Vni;

/// A contradiction within a desired configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A filter is used and not defined. FRR would accept it, and drop every route.
    #[error("{user} uses route-map {map}, which is not defined")]
    NoRouteMap {
        /// The object that uses it.
        user: String,
        /// The missing route-map.
        map: ObjectName,
    },
    /// A neighbour is in a group that its instance does not have.
    #[error("neighbour {neighbour} in VRF {vrf} is in group {group}, which is not defined")]
    NoGroup {
        /// The VRF.
        vrf: BgpVrf,
        /// The interface of the neighbour.
        neighbour: String,
        /// The missing group.
        group: ObjectName,
    },
    /// Two VRFs have one VNI.
    #[error("{first} and {second} both have VNI {vni}")]
    SharedVni {
        /// One VRF.
        first: VrfName,
        /// The other.
        second: VrfName,
        /// Their VNI.
        vni: Vni,
    },
    /// A list has an expression twice: the second never matters, and FRR would confuse them.
    #[error("list {0} has an expression twice")]
    Repeated(ObjectName),
    /// A router id of 0.0.0.0, which FRR takes for none.
    #[error("the router id of VRF {0} is 0.0.0.0")]
    ZeroRouterId(BgpVrf),
    /// An instance would exchange IPv4 routes with every neighbour, activated or not.
    #[error("BGP in VRF {0} exchanges IPv4 routes by default")]
    Ipv4ByDefault(BgpVrf),
    /// EVPN without an instance in the default VRF, or of a tenant's instance.
    #[error("only the instance in the default VRF announces every VNI, not {0}")]
    NotInDefault(BgpVrf),
}

impl FrrConfig {
    /// Checks that everything used is defined and that no VNI is used twice. A prefix list or
    /// AS-path list that is used and empty is fine: it permits nothing.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut taken = BTreeMap::new();
        for (vrf, vni) in &self.vrfs {
            if let Some(first) = taken.insert(*vni, *vrf) {
                return Err(ConfigError::SharedVni {
                    first,
                    second: *vrf,
                    vni: *vni,
                });
            }
        }
        if self.router_id == Some(Ipv4Addr::UNSPECIFIED) {
            return Err(ConfigError::ZeroRouterId(BgpVrf::Default));
        }
        let mut rules = BTreeSet::new();
        for (key, rule) in &self.as_paths {
            if !rules.insert((&key.list, &rule.regex)) {
                return Err(ConfigError::Repeated(key.list.clone()));
            }
        }
        let mut rules = BTreeSet::new();
        for (key, rule) in &self.communities {
            if !rules.insert((&key.list, &rule.regex)) {
                return Err(ConfigError::Repeated(key.list.clone()));
            }
        }
        for (vrf, instance) in &self.bgp {
            self.check_instance(*vrf, instance)?;
        }
        Ok(())
    }

    fn check_instance(&self, vrf: BgpVrf, instance: &BgpInstance) -> Result<(), ConfigError> {
        if instance.advertise_all_vni && vrf != BgpVrf::Default {
            return Err(ConfigError::NotInDefault(vrf));
        }
        if instance.ipv4_by_default {
            return Err(ConfigError::Ipv4ByDefault(vrf));
        }
        if instance.router_id == Some(Ipv4Addr::UNSPECIFIED) {
            return Err(ConfigError::ZeroRouterId(vrf));
        }
        for redistribute in [&instance.redistribute.ipv4, &instance.redistribute.ipv6] {
            if let Redistribute::Filtered(map) = redistribute {
                self.check_map(map, || format!("redistribution in VRF {vrf}"))?;
            }
        }
        for (name, group) in &instance.groups {
            self.check_peer(&group.settings, || format!("group {name} in VRF {vrf}"))?;
        }
        for (name, neighbour) in &instance.neighbours {
            self.check_peer(&neighbour.settings, || {
                format!("neighbour {name} in VRF {vrf}")
            })?;
            if let Remote::Group(group) = &neighbour.remote
                && !instance.groups.contains_key(group)
            {
                return Err(ConfigError::NoGroup {
                    vrf,
                    neighbour: name.to_string(),
                    group: group.clone(),
                });
            }
        }
        Ok(())
    }

    fn check_peer(
        &self,
        settings: &PeerSettings,
        user: impl Fn() -> String,
    ) -> Result<(), ConfigError> {
        for family in Family::ALL {
            let of_family = settings.families.of(family);
            let maps = [&of_family.route_map_in, &of_family.route_map_out];
            for map in maps.into_iter().flatten() {
                self.check_map(map, &user)?;
            }
        }
        Ok(())
    }

    fn check_map(&self, map: &ObjectName, user: impl Fn() -> String) -> Result<(), ConfigError> {
        let first = RouteMapKey {
            map: map.clone(),
            sequence: 0,
        };
        let next = self.route_maps.range(first..).next();
        if next.is_some_and(|(key, _)| key.map == *map) {
            return Ok(());
        }
        Err(ConfigError::NoRouteMap {
            user: user(),
            map: map.clone(),
        })
    }
}
