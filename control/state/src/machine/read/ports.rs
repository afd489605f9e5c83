//! The segment that a switch port belongs in.

use proto_types::{SwitchId, Vni};

use crate::catalog::entity::Partition;
use crate::machine::entity::{Machine, Segment};
use crate::switch::entity::Switch;
use crate::tables::Tables;

/// The segment that a port belongs in: that of its machine, or provisioning without a machine. A
/// port pinned after a restore stays where it was seen.
pub fn port_vni(tables: &Tables, switch: &Switch, port: &str) -> Vni {
    // The pin comes before everything that the restored state says of the port.
    let kept = switch.ports.get(port).and_then(|port| port.kept);
    kept.unwrap_or_else(|| vni_of_machine(tables, switch, port))
}

/// The segment that the machine at a port belongs in.
pub(crate) fn vni_of_machine(tables: &Tables, switch: &Switch, port: &str) -> Vni {
    let provisioning = || {
        let partition = tables.get::<Partition>(&switch.partition);
        partition
            .map(|partition| partition.provisioning_vni())
            .unwrap_or_default()
    };
    let at = (switch.id.clone(), port.to_owned());
    let machine = tables
        .index()
        .port_machine
        .get(&at)
        .and_then(|id| tables.get::<Machine>(id));
    machine.map_or_else(provisioning, |machine| match machine.segment {
        Segment::Provisioning => provisioning(),
        // The tenant's system may still run: neither its segment nor provisioning may hear it.
        Segment::Isolated => Vni::NONE,
        // Neither segment is right for a port that only the switch reports: isolated, a forged
        // frame reaches nobody.
        Segment::Tenant if is_unproven(machine, &switch.id, port) => Vni::NONE,
        Segment::Tenant => machine
            .allocation
            .as_ref()
            .and_then(|allocation| allocation.tenant_vrf())
            .and_then(|vrf| Vni::try_from(vrf).ok())
            .unwrap_or(Vni::NONE),
    })
}

/// `true` if only the switch reports the machine at the port, or a relay says that the card is
/// elsewhere.
fn is_unproven(machine: &Machine, switch: &SwitchId, port: &str) -> bool {
    let mut links = machine.links.iter();
    links.any(|link| {
        let is_here = link.switch == *switch && link.port == port;
        is_here && (link.unclaimed || machine.denied_by(link).is_some())
    })
}
