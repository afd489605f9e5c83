use super::Fitter;
use crate::capability::Capability;
use crate::model::{Membership, Port};
use crate::problem::{Refusal, SwitchObject};

impl Fitter<'_> {
    /// Every port of the switch, and no other. One that the desired state does not name is
    /// quarantined and otherwise left as it is.
    pub(super) fn ports(&mut self) {
        let desired = self.desired;
        for name in desired.ports.keys() {
            if !self.observed.ports.contains_key(name) {
                self.refuse(SwitchObject::Port(name.clone()), Refusal::NoPort);
            }
        }
        for (name, seen) in &self.observed.ports {
            let mut port = Port {
                membership: Membership::Quarantine,
                ..seen.clone()
            };
            if let Some(asked) = desired.ports.get(name) {
                port.admin_up = asked.admin_up;
                port.mtu = asked.mtu.or(seen.mtu);
                match self.place_refusal(&asked.membership) {
                    Some(refusal) => self.refuse(SwitchObject::Port(name.clone()), refusal),
                    None => port.membership = asked.membership.clone(),
                }
            }
            self.model.ports.insert(name.clone(), port);
        }
    }

    fn place_refusal(&self, place: &Membership) -> Option<Refusal> {
        match place {
            Membership::Quarantine => None,
            Membership::Segment { vni, is_private } => {
                let privacy = is_private.then_some(Capability::PrivatePorts);
                let is_known = self.model.segments.contains_key(vni);
                let unknown = (!is_known).then_some(Refusal::NoSegment(*vni));
                privacy.and_then(|needed| self.lacks(needed)).or(unknown)
            }
            Membership::Routed(vrf) => {
                let lacks = self.lacks(Capability::Vrfs);
                lacks.or_else(|| self.unknown_vrf(vrf))
            }
            Membership::Underlay => self.lacks(Capability::Underlay),
            Membership::Foreign(_) => Some(Refusal::Broken),
        }
    }
}
