use std::collections::BTreeMap;

use super::Fitter;
use crate::capability::Capability;
use crate::frr;
use crate::model::{Bgp, BgpNeighbour, BgpNeighbours, PortName, VrfName};
use crate::problem::{Refusal, SwitchObject};

impl Fitter<'_> {
    pub(super) fn bgp(&mut self) {
        let desired = self.desired.bgp.as_ref();
        if let Some(refusal) = desired.and_then(|_| self.lacks(Capability::Bgp)) {
            self.refuse(SwitchObject::Bgp, refusal);
            return;
        }
        let others = self.instances_of_others();
        let mut out = desired.map(Bgp::without_neighbours);
        if out.is_none() && !others.is_empty() {
            out = self.observed.bgp.as_ref().map(Bgp::without_neighbours);
        }
        let Some(mut out) = out else { return };
        out.vrfs = others;
        if let Some(desired) = desired {
            out.underlay = self.neighbours(None, &desired.underlay);
            for (vrf, neighbours) in &desired.vrfs {
                if let Some(refusal) = self.unknown_vrf(vrf) {
                    self.refuse(SwitchObject::BgpVrf(vrf.clone()), refusal);
                    continue;
                }
                let fitted = self.neighbours(Some(vrf), neighbours);
                out.vrfs.insert(vrf.clone(), fitted);
            }
        }
        self.model.bgp = Some(out);
    }

    /// The BGP instances in VRFs of others. They stay as long as the AS number does: an instance is
    /// removed with it, and an interrupted change could not make theirs again.
    fn instances_of_others(&self) -> BTreeMap<VrfName, BgpNeighbours> {
        let Some(seen) = &self.observed.bgp else {
            return BTreeMap::new();
        };
        let desired = self.desired.bgp.as_ref();
        if desired.is_some_and(|desired| desired.asn() != seen.asn()) {
            return BTreeMap::new();
        }
        let others = seen.vrfs.iter().filter(|(vrf, _)| !vrf.is_managed());
        let others = others.filter(|(vrf, _)| self.model.vrfs.contains_key(vrf));
        others
            .map(|(vrf, neighbours)| {
                // The ports of the switch are ours, and leave.
                let bound = |port: &PortName| self.model.is_bound(Some(vrf), port);
                let stays = neighbours.iter().filter(|(port, _)| bound(port));
                let stays = stays.map(|(port, of)| (port.clone(), of.clone()));
                (vrf.clone(), stays.collect())
            })
            .collect()
    }

    fn neighbours(&mut self, vrf: Option<&VrfName>, desired: &BgpNeighbours) -> BgpNeighbours {
        let mut out = BgpNeighbours::new();
        for (port, neighbour) in desired {
            match self.neighbour_refusal(vrf, port, neighbour) {
                None => {
                    out.insert(port.clone(), neighbour.clone());
                }
                Some(refusal) => {
                    let object = SwitchObject::Neighbour {
                        vrf: vrf.cloned(),
                        port: port.clone(),
                    };
                    self.refuse(object, refusal);
                }
            }
        }
        out
    }

    fn neighbour_refusal(
        &self,
        vrf: Option<&VrfName>,
        port: &PortName,
        neighbour: &BgpNeighbour,
    ) -> Option<Refusal> {
        let Some([import, export]) = neighbour.filters() else {
            return Some(Refusal::NoFilter);
        };
        for name in [import, export] {
            let is_ours = name.is_managed() && self.model.policies.route_maps.contains_key(name);
            if !is_ours {
                return Some(Refusal::NoPolicy(name.clone()));
            }
        }
        let map = self.model.policies.route_maps.get(import);
        if vrf.is_some() && !map.is_some_and(|map| map.permits_own_routes_only()) {
            return Some(Refusal::OpenImport(import.clone()));
        }
        if !self.model.is_bound(vrf, port) {
            return Some(Refusal::NotBound);
        }
        let checked = frr::check_neighbour(port, neighbour);
        checked.err().map(Refusal::Inexpressible)
    }
}
