//! What a switch does with its ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proto_types::{SwitchId, Vni};

use crate::catalog::entity::Partition;
use crate::entities::{Machine, Segment};
use crate::switch::entity::{Switch, SwitchPort};
use crate::tables::Tables;

/// A port as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortIntent {
    /// Name.
    pub name: String,
    /// Segment; [`Vni::NONE`] isolates the port.
    pub vni: Vni,
    /// Switched on.
    pub admin_up: bool,
}

/// A segment that a port of the switch is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentIntent {
    /// Which.
    pub vni: Vni,
    /// Whether unallocated machines boot in it.
    pub provisioning: bool,
    /// Underlay addresses of the others in it.
    pub remote_vteps: BTreeSet<IpAddr>,
    /// Ethernet MTU, bytes.
    pub mtu: u32,
}

/// All that a switch shall do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchDesired {
    /// Ports by name.
    pub ports: Vec<PortIntent>,
    /// Segments by VNI.
    pub segments: Vec<SegmentIntent>,
}

/// All ports of a switch as they shall be.
pub(crate) fn ports(tables: &Tables, switch: &Switch) -> Vec<PortIntent> {
    let intent = |(name, port): (&String, &SwitchPort)| PortIntent {
        name: name.clone(),
        vni: port_vni(tables, switch, name),
        admin_up: port.admin_up,
    };
    switch.ports.iter().map(intent).collect()
}

/// The traces of the calls that the machines at a switch are on their way for, by port.
pub fn port_traces(tables: &Tables, switch: &SwitchId) -> BTreeMap<String, String> {
    let ports = &tables.index().port_machine;
    let ports = ports.range((switch.clone(), String::new())..);
    let ports = ports.take_while(|((at, _), _)| at == switch);
    let traced = ports.filter_map(|((_, port), machine)| {
        let trace = tables.get::<Machine>(machine)?.trace.clone()?;
        Some((port.clone(), trace))
    });
    traced.collect()
}

/// The segment that a port belongs in: that of its machine, or provisioning for one that is free.
/// One that is kept since a restore stays where it was seen.
pub fn port_vni(tables: &Tables, switch: &Switch, port: &str) -> Vni {
    let kept = switch.ports.get(port).and_then(|port| port.kept);
    kept.unwrap_or_else(|| vni_of_machine(tables, switch, port))
}

/// The segment that the machine at a port belongs in.
pub(crate) fn vni_of_machine(tables: &Tables, switch: &Switch, port: &str) -> Vni {
    let provisioning = || {
        let partition = tables.get::<Partition>(&switch.partition);
        partition.map(|p| p.provisioning_vni()).unwrap_or_default()
    };
    let at = (switch.id.clone(), port.to_owned());
    let machine = tables
        .index()
        .port_machine
        .get(&at)
        .and_then(|id| tables.get::<Machine>(id));
    machine.map_or_else(provisioning, |machine| match machine.segment {
        Segment::Provisioning => provisioning(),
        Segment::Isolated => Vni::NONE,
        Segment::Tenant if is_unclaimed(machine, &at) => Vni::NONE,
        Segment::Tenant => machine
            .allocation
            .as_ref()
            .and_then(|allocation| allocation.tenant_vrf())
            .and_then(|vrf| Vni::try_from(vrf).ok())
            .unwrap_or(Vni::NONE),
    })
}

/// Whether only the switch says that the machine is there: then it gets into no tenant's segment,
/// and what runs on it into no other.
fn is_unclaimed(machine: &Machine, (switch, port): &(SwitchId, String)) -> bool {
    let mut links = machine.links.iter().filter(|link| link.unclaimed);
    links.any(|link| (&link.switch, &link.port) == (switch, port))
}
