//! The wait for the switches to report a machine's ports where they belong.

use crate::machine::entity::{HoldCause, Machine, Phase, PortLink, Segment};
use crate::machine::read::port_vni;
use crate::switch::entity::Switch;
use crate::tables::Tables;

/// Begin of the reason of a running machine that lacks a port.
const LACKS: &str = "it lacks a port: ";

/// `true` if the machine's way goes on with a report of its ports.
pub(crate) fn awaits_report(machine: &Machine) -> bool {
    match machine.phase {
        Phase::TenantPorts | Phase::ReclaimPorts | Phase::Held(HoldCause::Ports) => true,
        Phase::Held(HoldCause::Bmc) => machine.allocation.is_some(),
        _ => false,
    }
}

/// The first cable whose switch does not report its port where it belongs. A switch without a
/// record reports nothing: deleting it by force removes its cables from the machines.
pub(crate) fn first_unmoved<'m>(tables: &Tables, machine: &'m Machine) -> Option<&'m PortLink> {
    tenant_links(machine).find(|link| !is_moved(tables, machine, link))
}

/// The first cable whose switch does not report its port in the tenant's segment. All of them
/// before the ports are the tenant's: a report of the provisioning segment is no answer.
pub(crate) fn first_without_tenant<'m>(
    tables: &Tables,
    machine: &'m Machine,
) -> Option<&'m PortLink> {
    let is_handed_over = machine.segment == Segment::Tenant;
    tenant_links(machine).find(|link| !is_handed_over || !is_moved(tables, machine, link))
}

/// Names the first port that is not where it belongs. Empty if there is none.
pub(crate) fn unmoved_reason(tables: &Tables, machine: &Machine) -> String {
    let Some(link) = first_unmoved(tables, machine) else {
        return String::new();
    };
    if machine.phase == Phase::TenantPorts {
        return missing_reason(machine, link);
    }
    format!(
        "switch {} has not reported that port {} left the tenant's segment",
        link.switch, link.port
    )
}

/// Names a port that a switch has not reported in the tenant's segment.
pub(crate) fn missing_reason(machine: &Machine, link: &PortLink) -> String {
    if let Some(at) = machine.denied_by(link) {
        return format!(
            "{} asked for its lease at {} {}, as the relay of {} says, and not at {} {}",
            link.mac, at.switch, at.port, at.switch, link.switch, link.port
        );
    }
    format!(
        "switch {} has not reported port {} in the tenant's segment",
        link.switch, link.port
    )
}

/// The reason of a machine that runs without one of its ports.
pub(crate) fn lacking_reason(tables: &Tables, machine: &Machine) -> String {
    let missing = first_unmoved(tables, machine);
    let missing = missing.map(|link| missing_reason(machine, link));
    missing.map_or_else(String::new, |missing| format!("{LACKS}{missing}"))
}

/// `true` if the reason of a running machine is a port that it lacks.
pub(crate) fn lacks_port(machine: &Machine) -> bool {
    machine.phase == Phase::Running && machine.reason.starts_with(LACKS)
}

/// Cables that a tenant may use. A port that only its switch reports never enters a tenant's
/// segment.
fn tenant_links(machine: &Machine) -> impl Iterator<Item = &PortLink> {
    machine.links.iter().filter(|link| !link.unclaimed)
}

/// `true` if the switch reports the port of this cable in the segment that it belongs in.
fn is_moved(tables: &Tables, machine: &Machine, link: &PortLink) -> bool {
    // Isolated as it is, the port of a disputed cable is not where it belongs.
    if machine.segment == Segment::Tenant && machine.denied_by(link).is_some() {
        return false;
    }
    let Some(switch) = tables.get::<Switch>(&link.switch) else {
        return false;
    };
    let port = switch.ports.get(&link.port);
    let observed = port.and_then(|port| port.observed.as_ref());
    // The report counts, not the wish: until the switch says so, frames may still reach the tenant.
    observed.is_some_and(|seen| seen.vni == port_vni(tables, switch, &link.port))
}
