//! What a switch does with its ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proto_types::{SwitchId, Vni};

use crate::machine::entity::Machine;
use crate::machine::read::port_vni;
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
