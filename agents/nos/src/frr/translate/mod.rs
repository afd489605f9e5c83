//! The part of a switch that FRR keeps, and its form as FRR's configuration.
//!
//! Settings that the switch's model does not name are the same everywhere: filters are mandatory,
//! each session exchanges both families of unicast (RFC 8950) with short timers, VRFs announce
//! their connected routes and all their routes into EVPN, and the default VRF announces the
//! loopback.

mod error;
mod from_frr;
mod policies;
mod to_frr;

use std::collections::BTreeMap;

pub use error::{RoutingError, RuleFault};
pub(crate) use policies::{check_name, check_route_map};
pub(crate) use to_frr::check_neighbour;

use crate::model::{Bgp, Policies, SwitchModel, VrfName};
use crate::vni::Vni;

/// Route map of ours that the model does not have: it lets the default VRF announce the loopback.
const LOOPBACK_MAP: &str = "MM-LOOPBACK";

/// Seconds between two keep-alives, and without a message until a session fails. The reference's
/// values for its fabric: a dead neighbour whose link stays up is left after 8 s.
const TIMERS: (u16, u16) = (2, 8);

/// Most prefixes of an IP version that a neighbour in a VRF may announce: more end its session. Each is
/// a route of every leaf and spine. The reference has 24,000 and counts nothing else.
const TENANT_PREFIXES_MAX: u32 = 4096;

/// The part of a [`SwitchModel`] that FRR keeps. Only objects of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// Policies.
    pub policies: Policies,
    /// BGP.
    pub bgp: Option<Bgp>,
    /// VNIs of the routes of VRFs (L3 VNI).
    pub l3_vnis: BTreeMap<VrfName, Vni>,
}

impl Routing {
    /// The part of a model that FRR keeps, without the objects of others.
    #[must_use]
    pub fn of(model: &SwitchModel) -> Self {
        let mut policies = model.policies.clone();
        policies.prefix_lists.retain(|id, _| id.name.is_managed());
        policies.as_path_lists.retain(|name, _| name.is_managed());
        policies.route_maps.retain(|name, _| name.is_managed());
        let mut bgp = model.bgp.clone();
        if let Some(bgp) = &mut bgp {
            bgp.vrfs.retain(|vrf, _| vrf.is_managed());
        }
        let vrfs = model.vrfs.iter().filter(|(name, _)| name.is_managed());
        let l3_vnis = vrfs.filter_map(|(name, vrf)| Some((name.clone(), vrf.l3_vni?)));
        Self {
            policies,
            bgp,
            l3_vnis: l3_vnis.collect(),
        }
    }
}
