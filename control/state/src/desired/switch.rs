//! Desired state of switches: their ports and segments.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proto_types::{SwitchId, Vni};

use crate::machine::entity::Machine;
use crate::machine::read::port_vni;
use crate::switch::entity::{Switch, SwitchPort};
use crate::tables::Tables;

/// The desired state of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortIntent {
    /// Name.
    pub name: String,
    /// Segment; [`Vni::NONE`] isolates the port.
    pub vni: Vni,
    /// `true` if the port is administratively up.
    pub admin_up: bool,
}

/// The desired state of a segment that a port of the switch is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentIntent {
    /// VNI of the segment.
    pub vni: Vni,
    /// `true` if unallocated machines boot in the segment.
    pub provisioning: bool,
    /// Underlay addresses of the other members, to which the switch replicates (head-end
    /// replication).
    pub remote_vteps: BTreeSet<IpAddr>,
    /// Ethernet MTU, bytes.
    pub mtu: u32,
}

/// The desired state of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchDesired {
    /// Ports by name.
    pub ports: Vec<PortIntent>,
    /// Segments by VNI.
    pub segments: Vec<SegmentIntent>,
}

/// The desired state of all ports of a switch.
pub(crate) fn ports(tables: &Tables, switch: &Switch) -> Vec<PortIntent> {
    let intent = |(name, port): (&String, &SwitchPort)| PortIntent {
        name: name.clone(),
        vni: port_vni(tables, switch, name),
        admin_up: port.admin_up,
    };
    switch.ports.iter().map(intent).collect()
}

/// Traces of the calls that moved the machines at a switch, by port.
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
