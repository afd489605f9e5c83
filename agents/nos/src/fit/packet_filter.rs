use super::Fitter;
use crate::capability::Capability;
use crate::problem::{Refusal, SwitchObject};

impl Fitter<'_> {
    /// The filters of ports of this switch. A switch that cannot filter is told of each firewall:
    /// the rules for all ports are beside the point there.
    pub(super) fn packet_filter(&mut self) {
        let (seen, desired) = (&self.observed.packet_filter, &self.desired.packet_filter);
        let lacks = self.lacks(Capability::PacketFilter);
        if lacks.is_some() {
            self.model.packet_filter = seen.clone();
        } else {
            let out = &mut self.model.packet_filter;
            out.is_in_place = desired.is_in_place
                || seen.is_in_place
                || !desired.firewalls.is_empty()
                || !seen.firewalls.is_empty();
        }
        for (port, filter) in &desired.firewalls {
            let is_here = self.observed.ports.contains_key(port);
            let missing = (!is_here).then_some(Refusal::NoPort);
            if let Some(refusal) = lacks.clone().or(missing) {
                self.refuse(SwitchObject::VxlanFilter(port.clone()), refusal);
                continue;
            }
            let firewalls = &mut self.model.packet_filter.firewalls;
            firewalls.insert(port.clone(), filter.clone());
        }
    }
}
