//! The steps that have to wait for another one.

use crate::model::{Membership, PolicyName, PortName, RouteMatch, SwitchModel, Vrf, VrfName};
use crate::step::Step;
use crate::vni::Vni;

/// The dependencies between the steps of one plan.
///
/// A step depends on an earlier one if the switch could not carry it out without that one, or if it
/// would let two tenants meet. A failed step holds those that depend on it, and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Dependencies<'a> {
    /// The state that the plan starts from.
    pub observed: &'a SwitchModel,
    /// The fitted state that it leads to.
    pub target: &'a SwitchModel,
}

impl Dependencies<'_> {
    /// `true` if `step` has to wait until `earlier` is in effect.
    ///
    /// Only direct dependencies: a held step holds others in turn.
    #[must_use]
    pub fn holds(&self, earlier: &Step, step: &Step) -> bool {
        match step {
            // A step out of a place waits for nothing, except that a session leaves before its
            // port.
            Step::Quarantine { port } => matches!(
                earlier,
                Step::RemoveNeighbour { port: of, .. } if of == port
            ),
            Step::SetAdmin { port, up: true } => match earlier {
                Step::Quarantine { port: of } | Step::Enter { port: of, .. } => of == port,
                Step::SetNeighbour { port: of, .. } | Step::SetVxlanFilter { port: of, .. } => {
                    of == port
                }
                _ => false,
            },
            Step::Enter { port, place } => {
                matches!(earlier, Step::Quarantine { port: of } if of == port)
                    || filters_packets_of(earlier, port)
                    || self.holds_place(earlier, place)
            }
            Step::EnsureSegment { vni, vlan, .. } => match earlier {
                Step::RemoveSegment { vni: of } => {
                    let seen = self.observed.segments.get(of);
                    of == vni || vlan.is_some() && seen.is_some_and(|seen| seen.vlan == *vlan)
                }
                Step::RemoveVrf { name } => self.l3_vni(name) == Some(*vni),
                _ => false,
            },
            Step::AddRemote { vni, .. } => self.holds_segment(earlier, *vni),
            Step::SetGateway {
                vni,
                gateway: Some(gateway),
            } => self.holds_segment(earlier, *vni) || self.holds_vrf(earlier, gateway.vrf()),
            Step::EnsureVrf { name, vrf } => self.holds_new_vrf(earlier, name, vrf),
            Step::SetVxlanFilter { .. } => matches!(earlier, Step::EnsurePacketFilter),
            step if step.removes() => self.holds_removal(earlier, step),
            step => self.holds_bgp(earlier, step),
        }
    }

    fn holds_place(&self, earlier: &Step, place: &Membership) -> bool {
        match place {
            Membership::Segment { vni, .. } => self.holds_segment(earlier, *vni),
            Membership::Routed(vrf) => self.holds_vrf(earlier, vrf),
            // Ports of the underlay share no place of a tenant.
            _ => false,
        }
    }

    /// `true` if nothing may come into a segment before a step: the segment is not made, or
    /// something of another tenant is still in it.
    fn holds_segment(&self, earlier: &Step, vni: Vni) -> bool {
        match earlier {
            Step::EnsureSegment { vni: of, .. }
            | Step::RemoveRemote { vni: of, .. }
            | Step::SetGateway {
                vni: of,
                gateway: None,
            } => *of == vni,
            Step::Quarantine { port } => {
                let place = self.observed.ports.get(port).map(|port| &port.membership);
                place.and_then(Membership::segment) == Some(vni)
            }
            _ => false,
        }
    }

    /// `true` if nothing may come into a VRF before a step: the VRF is not made or not closed
    /// towards the underlay, or something of another tenant is still in it.
    fn holds_vrf(&self, earlier: &Step, vrf: &VrfName) -> bool {
        match earlier {
            Step::PutL3mdevFirst => true,
            Step::EnsureVrf { name, .. } => name == vrf,
            Step::RemoveNeighbour { vrf: Some(of), .. } => of == vrf,
            earlier => self.leaves_vrf(earlier, vrf),
        }
    }

    /// `true` if a step takes a port or a gateway out of a VRF.
    fn leaves_vrf(&self, earlier: &Step, vrf: &VrfName) -> bool {
        match earlier {
            Step::Quarantine { port } => {
                let seen = self.observed.ports.get(port);
                seen.is_some_and(|p| matches!(&p.membership, Membership::Routed(of) if of == vrf))
            }
            Step::SetGateway { vni, gateway: None } | Step::RemoveSegment { vni } => {
                let gateway = self.observed.segments.get(vni);
                let gateway = gateway.and_then(|segment| segment.gateway.as_ref());
                gateway.is_some_and(|gateway| gateway.vrf() == vrf)
            }
            _ => false,
        }
    }

    fn l3_vni(&self, vrf: &VrfName) -> Option<Vni> {
        self.observed.vrfs.get(vrf)?.l3_vni
    }

    fn holds_new_vrf(&self, earlier: &Step, name: &VrfName, vrf: &Vrf) -> bool {
        match earlier {
            Step::RemoveVrf { name: of } => {
                let seen = self.observed.vrfs.get(of);
                of == name || seen.is_some_and(|seen| seen.clashes(vrf))
            }
            Step::RemoveSegment { vni } => vrf.l3_vni == Some(*vni),
            _ => false,
        }
    }

    fn holds_removal(&self, earlier: &Step, step: &Step) -> bool {
        match (earlier, step) {
            (Step::Quarantine { .. }, Step::RemoveSegment { vni }) => {
                self.holds_segment(earlier, *vni)
            }
            // The hosts of its gateway have to be announced one by one before its prefix is not.
            (Step::SetRouteMap { name, .. }, Step::RemoveSegment { vni }) => {
                let segment = self.observed.segments.get(vni);
                let gateway = segment.and_then(|segment| segment.gateway.as_ref());
                gateway.is_some_and(|gateway| exports_by(self.observed, gateway.vrf(), name))
            }
            (Step::EnsurePacketFilter, Step::RemoveVxlanFilter { .. }) => true,
            (
                Step::Quarantine { port: of } | Step::RemoveNeighbour { port: of, .. },
                Step::RemoveVxlanFilter { port },
            ) => of == port,
            (Step::RemoveBgpVrf { vrf }, Step::RemoveVrf { name }) => vrf == name,
            (_, Step::RemoveVrf { name }) => self.leaves_vrf(earlier, name),
            (Step::RemoveNeighbour { vrf: Some(of), .. }, Step::RemoveBgpVrf { vrf }) => of == vrf,
            (Step::RemoveNeighbour { .. } | Step::RemoveBgpVrf { .. }, Step::RemoveBgp) => true,
            (
                Step::SetNeighbour { vrf, port, .. } | Step::RemoveNeighbour { vrf, port },
                Step::RemoveRouteMap { name },
            ) => {
                let of = self.observed.bgp.as_ref();
                let of = of.and_then(|bgp| bgp.neighbours(vrf.as_ref()));
                let seen = of.and_then(|of| of.get(port));
                seen.is_some_and(|seen| [&seen.import, &seen.export].contains(&&Some(name.clone())))
            }
            (_, Step::RemovePrefixList { list }) => {
                self.stops_naming(earlier, &RouteMatch::Prefix(list.clone()))
            }
            (_, Step::RemoveAsPathList { name }) => {
                self.stops_naming(earlier, &RouteMatch::AsPath(name.clone()))
            }
            _ => false,
        }
    }

    /// `true` if a step changes or removes a route map that names a list.
    fn stops_naming(&self, earlier: &Step, list: &RouteMatch) -> bool {
        let (Step::SetRouteMap { name, .. } | Step::RemoveRouteMap { name }) = earlier else {
            return false;
        };
        names_list(self.observed, name, list)
    }

    fn holds_bgp(&self, earlier: &Step, step: &Step) -> bool {
        match (earlier, step) {
            (Step::RemoveBgp, Step::EnsureBgp { .. }) => true,
            (Step::RemoveBgp | Step::EnsureBgp { .. }, Step::EnsureBgpVrf { .. }) => true,
            (Step::RemoveBgpVrf { vrf: of }, Step::EnsureBgpVrf { vrf })
            | (Step::EnsureVrf { name: of, .. }, Step::EnsureBgpVrf { vrf }) => of == vrf,
            (Step::EnsurePrefixList { list: of }, Step::AddPrefix { list, .. }) => of == list,
            // A prefix is announced before its hosts are withheld from who knows them already.
            (
                Step::SetGateway {
                    gateway: Some(gateway),
                    ..
                },
                Step::SetRouteMap { name, map },
            ) => {
                let is_in_force = self.observed.policies.route_maps.contains_key(name);
                is_in_force && map.withholds() && exports_by(self.target, gateway.vrf(), name)
            }
            (_, Step::SetRouteMap { map, .. }) => {
                let mut lists = map.matches();
                lists.any(|list| changes_list(earlier, list))
            }
            (
                _,
                Step::SetNeighbour {
                    vrf,
                    port,
                    neighbour,
                },
            ) => {
                let filters = neighbour.filters().into_iter().flatten();
                let mut filters = filters;
                self.holds_session(earlier, vrf.as_ref())
                    || is_of_port(earlier, port)
                    || filters_packets_of(earlier, port)
                    || filters.any(|name| self.changes_filter(earlier, name))
            }
            _ => false,
        }
    }

    fn holds_session(&self, earlier: &Step, vrf: Option<&VrfName>) -> bool {
        match earlier {
            Step::RemoveBgp | Step::EnsureBgp { .. } => true,
            Step::EnsureBgpVrf { vrf: of } => vrf == Some(of),
            earlier => vrf.is_some_and(|vrf| self.holds_vrf(earlier, vrf)),
        }
    }

    /// `true` if a step changes a route map, or a list that it names in the end.
    fn changes_filter(&self, earlier: &Step, name: &PolicyName) -> bool {
        if matches!(earlier, Step::SetRouteMap { name: of, .. } if of == name) {
            return true;
        }
        let map = self.target.policies.route_maps.get(name);
        map.is_some_and(|map| map.matches().any(|list| changes_list(earlier, list)))
    }
}

/// `true` if a neighbour of a VRF is told its routes by a route map.
fn exports_by(model: &SwitchModel, vrf: &VrfName, map: &PolicyName) -> bool {
    let bgp = model.bgp.as_ref();
    let neighbours = bgp.and_then(|bgp| bgp.neighbours(Some(vrf)));
    neighbours.is_some_and(|of| of.values().any(|one| one.export.as_ref() == Some(map)))
}

fn names_list(model: &SwitchModel, map: &PolicyName, list: &RouteMatch) -> bool {
    let map = model.policies.route_maps.get(map);
    map.is_some_and(|map| map.matches().any(|found| found == list))
}

/// `true` if a step makes a list, or cuts what must not pass it any more. One more prefix is no
/// reason to wait: without it the list is only stricter.
fn changes_list(earlier: &Step, list: &RouteMatch) -> bool {
    match (earlier, list) {
        (
            Step::EnsurePrefixList { list: of } | Step::RemovePrefix { list: of, .. },
            RouteMatch::Prefix(list),
        ) => of == list,
        (Step::SetAsPathList { name: of, .. }, RouteMatch::AsPath(name)) => of == name,
        _ => false,
    }
}

/// `true` if a port may send to others before a step what it must not.
fn filters_packets_of(earlier: &Step, port: &PortName) -> bool {
    matches!(earlier, Step::SetVxlanFilter { port: of, .. } if of == port)
}

/// `true` if a step moves a port, or removes the session on it.
fn is_of_port(earlier: &Step, port: &PortName) -> bool {
    match earlier {
        Step::RemoveNeighbour { port: of, .. }
        | Step::Quarantine { port: of }
        | Step::Enter { port: of, .. } => of == port,
        _ => false,
    }
}
