//! The number of steps that a difference needs, counted object by object without an order.

use std::collections::BTreeSet;

use agents_nos::model::{Bgp, PortName, Segment, VrfName};
use agents_nos::{Membership, SwitchModel, Vni};

/// The number of steps from one state to another one. Each difference counts once, and what is in
/// an object that has to be made anew counts twice: it goes and comes.
pub(crate) fn needed(from: &SwitchModel, to: &SwitchModel) -> usize {
    let count = Count { from, to };
    let globals = [
        from.vtep != to.vtep,
        from.is_l3mdev_first != to.is_l3mdev_first,
        from.packet_filter.is_in_place != to.packet_filter.is_in_place,
    ];
    let globals = globals.iter().filter(|differs| **differs).count();
    globals
        + count.packet_filters()
        + count.ports()
        + count.segments()
        + count.vrfs()
        + count.policies()
        + count.bgp()
}

struct Count<'a> {
    from: &'a SwitchModel,
    to: &'a SwitchModel,
}

impl Count<'_> {
    fn is_same_vrf(&self, name: &VrfName) -> bool {
        match (self.from.vrfs.get(name), self.to.vrfs.get(name)) {
            (Some(from), Some(to)) => from.table == to.table && from.l3_vni == to.l3_vni,
            _ => false,
        }
    }

    fn is_same_segment(&self, vni: Vni) -> bool {
        match (self.from.segments.get(&vni), self.to.segments.get(&vni)) {
            (Some(from), Some(to)) => from.vlan == to.vlan,
            _ => false,
        }
    }

    /// `true` if a port does not move at all.
    fn rests(&self, name: &PortName) -> bool {
        let (from, to) = (&self.from.ports[name], &self.to.ports[name]);
        from.membership == to.membership
            && match &from.membership {
                Membership::Segment { vni, .. } => self.is_same_segment(*vni),
                Membership::Routed(vrf) => self.is_same_vrf(vrf),
                _ => true,
            }
    }

    fn packet_filters(&self) -> usize {
        let [from, to] = [self.from, self.to].map(|state| &state.packet_filter.firewalls);
        let ports: BTreeSet<&PortName> = from.keys().chain(to.keys()).collect();
        let differs = |port: &&&PortName| from.get(**port) != to.get(**port);
        ports.iter().filter(differs).count()
    }

    fn ports(&self) -> usize {
        let one = |name: &PortName| {
            let (from, to) = (&self.from.ports[name], &self.to.ports[name]);
            let settings = usize::from(from.admin_up != to.admin_up);
            let settings = settings + usize::from(from.mtu != to.mtu);
            let (old, new) = (&from.membership, &to.membership);
            let moves = match (old.segment(), new.segment()) {
                _ if self.rests(name) => 0,
                (Some(old), Some(new)) if old == new && self.is_same_segment(old) => 1,
                _ => {
                    let leaves = usize::from(*old != Membership::Quarantine);
                    leaves + usize::from(*new != Membership::Quarantine)
                }
            };
            settings + moves
        };
        self.to.ports.keys().map(one).sum()
    }

    fn segments(&self) -> usize {
        let gone = self
            .from
            .segments
            .keys()
            .filter(|vni| !self.is_same_segment(**vni));
        let here = self.to.segments.iter().map(|(vni, to)| {
            let from = self
                .from
                .segments
                .get(vni)
                .filter(|_| self.is_same_segment(*vni));
            from.map_or_else(|| made(to), |from| self.changed(from, to))
        });
        gone.count() + here.sum::<usize>()
    }

    fn changed(&self, from: &Segment, to: &Segment) -> usize {
        let vrf = from.gateway.as_ref().map(|gateway| gateway.vrf());
        let stays = vrf.is_some_and(|vrf| {
            self.is_same_vrf(vrf) && to.gateway.as_ref().map(|gateway| gateway.vrf()) == Some(vrf)
        });
        let leaves = usize::from(vrf.is_some() && !stays);
        let cut = from.remotes.difference(&to.remotes).count();
        if !from.is_intact {
            return cut + leaves + made(to);
        }
        let gateway = to.gateway.is_some() && !(stays && from.gateway == to.gateway);
        cut + leaves
            + usize::from((from.mtu, from.tunnel) != (to.mtu, to.tunnel))
            + to.remotes.difference(&from.remotes).count()
            + usize::from(gateway)
    }

    fn vrfs(&self) -> usize {
        let gone = self.from.vrfs.keys().filter(|name| !self.is_same_vrf(name));
        let here = self.to.vrfs.iter();
        let here = here.filter(|(name, vrf)| self.from.vrfs.get(*name) != Some(vrf));
        gone.count() + here.count()
    }

    fn policies(&self) -> usize {
        let (from, to) = (&self.from.policies, &self.to.policies);
        let mut steps = 0;
        for (id, list) in &to.prefix_lists {
            steps += match from.prefix_lists.get(id) {
                None => 1 + list.rules.len(),
                Some(seen) => seen.rules.symmetric_difference(&list.rules).count(),
            };
        }
        let gone = from.prefix_lists.keys();
        steps += gone.filter(|id| !to.prefix_lists.contains_key(*id)).count();
        let changed = to.as_path_lists.iter();
        let is_new = |name, list| from.as_path_lists.get(name) != Some(list);
        steps += changed.filter(|(name, list)| is_new(*name, *list)).count();
        let gone = from.as_path_lists.keys();
        steps += gone
            .filter(|name| !to.as_path_lists.contains_key(*name))
            .count();
        let changed = to.route_maps.iter();
        let is_new = |name, map| from.route_maps.get(name) != Some(map);
        steps += changed.filter(|(name, map)| is_new(*name, *map)).count();
        let gone = from.route_maps.keys();
        steps
            + gone
                .filter(|name| !to.route_maps.contains_key(*name))
                .count()
    }

    fn bgp(&self) -> usize {
        let (from, to) = (self.from.bgp.as_ref(), self.to.bgp.as_ref());
        let same = from.map(Bgp::asn) == to.map(Bgp::asn);
        let whole = match (from, to) {
            (Some(from), Some(to)) if same => {
                let is_other =
                    from.router_id() != to.router_id() || from.is_draining != to.is_draining;
                usize::from(is_other || !from.is_intact)
            }
            _ => usize::from(from.is_some()) + usize::from(to.is_some()),
        };
        let rests = |vrf: Option<&VrfName>| {
            let has = |bgp: Option<&Bgp>| bgp.is_some_and(|bgp| bgp.neighbours(vrf).is_some());
            same && has(from) && has(to) && vrf.is_none_or(|vrf| self.is_same_vrf(vrf))
        };
        let sessions = |bgp: Option<&Bgp>| -> Vec<(Option<VrfName>, PortName)> {
            let instances = bgp.into_iter().flat_map(Bgp::instances);
            let all = instances.flat_map(|(vrf, of)| of.keys().map(move |port| (vrf, port)));
            all.map(|(vrf, port)| (vrf.cloned(), port.clone()))
                .collect()
        };
        let settings = |bgp: Option<&Bgp>, vrf: Option<&VrfName>, port: &PortName| {
            bgp.and_then(|bgp| bgp.neighbours(vrf)?.get(port).cloned())
        };
        let stays = |vrf: Option<&VrfName>, port: &PortName| {
            let is_ours = self.from.ports.contains_key(port);
            let has = |bgp| settings(bgp, vrf, port).is_some();
            let rests = rests(vrf) && has(from) && has(to);
            rests && self.from.is_bound(vrf, port) && (!is_ours || self.rests(port))
        };
        let instances = |bgp: Option<&Bgp>| {
            let vrfs = bgp.into_iter().flat_map(|bgp| bgp.vrfs.keys());
            vrfs.filter(|vrf| !rests(Some(*vrf))).count()
        };
        let gone = sessions(from);
        let gone = gone.iter().filter(|(vrf, port)| !stays(vrf.as_ref(), port));
        let here = sessions(to);
        let here = here.iter().filter(|(vrf, port)| {
            let vrf = vrf.as_ref();
            !stays(vrf, port) || settings(from, vrf, port) != settings(to, vrf, port)
        });
        whole + instances(from) + instances(to) + gone.count() + here.count()
    }
}

/// The number of steps that make a segment.
fn made(segment: &Segment) -> usize {
    1 + segment.remotes.len() + usize::from(segment.gateway.is_some())
}
