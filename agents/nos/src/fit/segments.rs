//! VRFs and segments.

use super::Fitter;
use super::numbers::{Number, TakenNumbers};
use crate::capability::Capability;
use crate::model::{Gateway, Segment, Tunnel, Vrf, VrfName};
use crate::problem::{Refusal, SwitchObject};
use crate::vni::Vni;

impl Fitter<'_> {
    /// VRFs of others stay and keep their numbers; of two desired ones with the same number the
    /// first by name gets it.
    pub(super) fn vrfs(&mut self) -> TakenNumbers {
        let mut taken = TakenNumbers::default();
        let others = self.observed.vrfs.iter();
        for (name, vrf) in others.filter(|(name, _)| !name.is_managed()) {
            // Two VRFs of others that share a number are not ours to repair.
            if taken
                .take(&vrf_numbers(vrf), &SwitchObject::Vrf(name.clone()))
                .is_err()
            {
                tracing::debug!(vrf = %name, "shares its number with another VRF");
            }
            self.model.vrfs.insert(name.clone(), *vrf);
        }
        let is_l3mdev_first = self.observed.is_l3mdev_first;
        self.model.is_l3mdev_first = is_l3mdev_first;
        for (name, vrf) in &self.desired.vrfs {
            let object = SwitchObject::Vrf(name.clone());
            let refusal = self.vrf_refusal(name, vrf);
            let refusal = refusal.or_else(|| taken.take(&vrf_numbers(vrf), &object).err());
            if let Some(refusal) = refusal {
                self.refuse(object, refusal);
                continue;
            }
            self.model.vrfs.insert(name.clone(), *vrf);
            self.model.is_l3mdev_first = true;
        }
        taken
    }

    fn vrf_refusal(&self, name: &VrfName, vrf: &Vrf) -> Option<Refusal> {
        if !name.is_managed() {
            return Some(Refusal::NotManaged);
        }
        let is_broken = !vrf.has_unreachable_default || !vrf.is_intact;
        let broken = is_broken.then_some(Refusal::Broken);
        self.lacks(Capability::Vrfs).or(broken)
    }

    pub(super) fn segments(&mut self, taken: &mut TakenNumbers) {
        for (vni, segment) in &self.desired.segments {
            let object = SwitchObject::Segment(*vni);
            let lacks_vlans = segment.vlan.and_then(|_| self.lacks(Capability::Vlans));
            let broken = (!segment.is_intact).then_some(Refusal::Broken);
            let numbers = [Some(Number::Vni(*vni)), segment.vlan.map(Number::Vlan)];
            let lacks_tunnel = self.tunnel_refusal(segment.tunnel);
            let refusal = lacks_vlans.or(lacks_tunnel).or(broken);
            let refusal = refusal.or_else(|| taken.take(&numbers, &object).err());
            if let Some(refusal) = refusal {
                self.refuse(object, refusal);
                continue;
            }
            let gateway = segment.gateway.as_ref();
            let mut remotes = segment.remotes.clone();
            let no_remotes = self.lacks(Capability::Remotes);
            if let Some(refusal) = no_remotes.filter(|_| !remotes.is_empty()) {
                // EVPN still finds the others: the segment is there without the list.
                self.refuse(object, refusal);
                remotes.clear();
            }
            let mut fitted = Segment {
                gateway: gateway.and_then(|gateway| self.gateway(*vni, gateway)),
                remotes,
                ..segment.clone()
            };
            if fitted.tunnel == Tunnel::Absent {
                fitted.remotes.clear();
            }
            self.model.segments.insert(*vni, fitted);
        }
    }

    fn tunnel_refusal(&self, tunnel: Tunnel) -> Option<Refusal> {
        match tunnel {
            Tunnel::Open => None,
            Tunnel::Private => self.lacks(Capability::PrivateTunnels),
            Tunnel::Absent => self.lacks(Capability::LocalSegments),
        }
    }

    fn gateway(&mut self, vni: Vni, gateway: &Gateway) -> Option<Gateway> {
        let refusal = self.lacks(Capability::Vrfs);
        let refusal = refusal.or_else(|| self.unknown_vrf(gateway.vrf()));
        if let Some(refusal) = refusal {
            self.refuse(SwitchObject::Gateway(vni), refusal);
            return None;
        }
        Some(gateway.clone())
    }

    /// The reason to refuse what is for a VRF that is not ours or refused. `None` if it is there.
    pub(super) fn unknown_vrf(&self, name: &VrfName) -> Option<Refusal> {
        let is_known = name.is_managed() && self.model.vrfs.contains_key(name);
        (!is_known).then(|| Refusal::NoVrf(name.clone()))
    }
}

fn vrf_numbers(vrf: &Vrf) -> [Option<Number>; 2] {
    [vrf.l3_vni.map(Number::Vni), Some(Number::Table(vrf.table))]
}
