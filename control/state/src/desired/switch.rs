//! Desired state of switches: their ports and segments.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proto_types::{SwitchId, Vni};

use crate::desired::gateway::GatewayIntent;
use crate::desired::port::PortIntent;
use crate::machine::entity::Machine;
use crate::tables::Tables;

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
    /// The anycast gateway. `None` if the switch is no host in the segment.
    pub gateway: Option<GatewayIntent>,
}

/// The desired state of a tenant's VRF that a port of the switch is routed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VrfIntent {
    /// L3 VNI: the VRF id of the tenant's child network.
    pub vni: Vni,
}

/// The desired state of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchDesired {
    /// Ports by name.
    pub ports: Vec<PortIntent>,
    /// Segments by VNI.
    pub segments: Vec<SegmentIntent>,
    /// VRFs by L3 VNI.
    pub vrfs: Vec<VrfIntent>,
    /// `true` if BGP announces its routes as the last resort.
    pub is_drained: bool,
}

impl VrfIntent {
    /// Added to the VNI: the sum is none of the kernel's own tables, and none of those that
    /// operating systems of switches number from 1001.
    const TABLE_BASE: u32 = 1_000_000;

    /// Name of the VRF's device: at most 11 bytes.
    pub fn name(self) -> String {
        format!("Vrf{}", self.vni.get())
    }

    /// Routing table of the VRF.
    pub fn table(self) -> u32 {
        Self::TABLE_BASE + self.vni.get()
    }
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
