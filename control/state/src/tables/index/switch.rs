//! Indexes of the neighbours and segments that switches report.

use proto_types::{MacAddr, SwitchId};

use crate::switch::entity::{Switch, addresses};
use crate::tables::index::{Index, Indexed, insert, remove, subtract};

/// MAC addresses of a switch's neighbours, each with its port.
pub(crate) fn heard(switch: &Switch) -> impl Iterator<Item = (MacAddr, (SwitchId, String))> + '_ {
    let ports = switch.ports.iter().filter(|_| switch.hears);
    ports.flat_map(|(name, port)| {
        let heard = port.observed.iter().flat_map(|seen| &seen.neighbours);
        heard
            .flat_map(addresses)
            .map(|mac| (mac, (switch.id.clone(), name.clone())))
    })
}

impl Indexed for Switch {
    fn add_to(&self, index: &mut Index) {
        for (mac, at) in heard(self) {
            insert(&mut index.heard, mac, at);
        }
        for vni in observed_vnis(self) {
            *index.observed_vnis.entry(vni).or_default() += 1;
        }
    }
    fn remove_from(&self, index: &mut Index) {
        for (mac, at) in heard(self) {
            remove(&mut index.heard, &mac, &at);
        }
        for vni in observed_vnis(self) {
            subtract(&mut index.observed_vnis, vni);
        }
    }
}

/// Segments of a switch's ports, as it reports them. Isolated ports are left out.
pub(crate) fn observed_vnis(switch: &Switch) -> impl Iterator<Item = u32> {
    let observed = switch
        .ports
        .values()
        .filter_map(|port| port.observed.as_ref());
    observed.map(|seen| seen.vni.get()).filter(|vni| *vni != 0)
}
