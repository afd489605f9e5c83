use crate::model::{Bgp, Membership, PortName, Segment, SwitchModel, Vrf, VrfName};
use crate::vni::Vni;

/// Two states of a switch, and what stays from one to the other.
pub(super) struct Kept<'a> {
    pub(super) observed: &'a SwitchModel,
    pub(super) target: &'a SwitchModel,
}

impl Kept<'_> {
    /// `true` if a VRF stays the same device. Another table or L3 VNI needs another device.
    pub(super) fn vrf(&self, name: &VrfName) -> bool {
        let both = self.observed.vrfs.get(name).zip(self.target.vrfs.get(name));
        both.is_some_and(|(seen, wanted)| seen.is_same_device(wanted))
    }

    /// `true` if a segment stays the same device. Another VLAN needs another device.
    pub(super) fn segment(&self, vni: Vni) -> bool {
        let both = self
            .observed
            .segments
            .get(&vni)
            .zip(self.target.segments.get(&vni));
        both.is_some_and(|(seen, wanted)| seen.vlan == wanted.vlan)
    }

    /// `true` if a place stays, so that its ports can.
    fn place(&self, place: &Membership) -> bool {
        match place {
            Membership::Segment { vni, .. } => self.segment(*vni),
            Membership::Routed(vrf) => self.vrf(vrf),
            Membership::Quarantine | Membership::Underlay => true,
            Membership::Foreign(_) => false,
        }
    }

    /// The old and the new place of a port.
    fn places(&self, port: &PortName) -> Option<[&Membership; 2]> {
        let seen = self.observed.ports.get(port)?;
        let wanted = self.target.ports.get(port)?;
        Some([&seen.membership, &wanted.membership])
    }

    /// `true` if a port stays in its place as it is.
    pub(super) fn port(&self, port: &PortName) -> bool {
        let places = self.places(port);
        places.is_some_and(|[from, to]| from == to && self.place(from))
    }

    /// `true` if a port has to leave its place. A change of privacy inside a segment needs no
    /// leave.
    pub(super) fn has_to_leave(&self, port: &PortName) -> bool {
        let Some([from, to]) = self.places(port) else {
            return false;
        };
        let same_segment = from.segment().is_some() && from.segment() == to.segment();
        let stays = (from == to || same_segment) && self.place(from);
        *from != Membership::Quarantine && !stays
    }

    /// `true` if BGP stays. Another AS number needs another BGP.
    pub(super) fn bgp(&self) -> bool {
        let both = self.observed.bgp.as_ref().zip(self.target.bgp.as_ref());
        both.is_some_and(|(seen, wanted)| seen.asn() == wanted.asn())
    }

    /// `true` if a BGP instance stays.
    pub(super) fn instance(&self, vrf: Option<&VrfName>) -> bool {
        let has = |bgp: &Option<Bgp>| {
            let bgp = bgp.as_ref();
            bgp.is_some_and(|bgp| bgp.neighbours(vrf).is_some())
        };
        self.bgp()
            && has(&self.observed.bgp)
            && has(&self.target.bgp)
            && vrf.is_none_or(|vrf| self.vrf(vrf))
    }

    /// `true` if the session of a neighbour stays, perhaps with other settings. It does not if its
    /// port moves, also not if somebody moved the port and left the session behind.
    pub(super) fn neighbour(&self, vrf: Option<&VrfName>, port: &PortName) -> bool {
        let has = |bgp: &Option<Bgp>| {
            let neighbours = bgp.as_ref().and_then(|bgp| bgp.neighbours(vrf));
            neighbours.is_some_and(|of| of.contains_key(port))
        };
        let is_ours = self.observed.ports.contains_key(port);
        self.instance(vrf)
            && has(&self.observed.bgp)
            && has(&self.target.bgp)
            && (!is_ours || self.port(port))
    }

    /// `true` if the gateway of a segment stays in its VRF, perhaps with other addresses.
    pub(super) fn gateway(&self, vni: Vni) -> bool {
        let gateway = |model: &SwitchModel| {
            let segment = model.segments.get(&vni);
            segment.and_then(|segment| Some(segment.gateway.as_ref()?.vrf().clone()))
        };
        let seen = gateway(self.observed);
        seen.is_some_and(|vrf| gateway(self.target).as_ref() == Some(&vrf) && self.vrf(&vrf))
    }

    /// `true` if a VRF has to go before others are made: it is made anew, or another object gets
    /// its table or VNI.
    pub(super) fn is_vrf_in_the_way(&self, name: &VrfName, vrf: &Vrf) -> bool {
        if self.vrf(name) {
            return false;
        }
        let target = self.target;
        let mut vrfs = target.vrfs.values();
        target.vrfs.contains_key(name)
            || vrfs.any(|other| other.clashes(vrf))
            || vrf
                .l3_vni
                .is_some_and(|vni| target.segments.contains_key(&vni))
    }

    /// `true` if a segment has to go before others are made: it is made anew, another object gets
    /// its VLAN or VNI, or the VRF of its gateway has to go.
    pub(super) fn is_segment_in_the_way(&self, vni: Vni, segment: &Segment) -> bool {
        if self.segment(vni) {
            return false;
        }
        let target = self.target;
        let mut segments = target.segments.values();
        let mut vrfs = target.vrfs.values();
        let gateway = segment.gateway.as_ref().map(|gateway| gateway.vrf());
        let vrf = gateway.and_then(|name| Some((name, self.observed.vrfs.get(name)?)));
        target.segments.contains_key(&vni)
            || segments.any(|other| segment.vlan.is_some() && other.vlan == segment.vlan)
            || vrfs.any(|other| other.l3_vni == Some(vni))
            || vrf.is_some_and(|(name, vrf)| self.is_vrf_in_the_way(name, vrf))
    }
}
