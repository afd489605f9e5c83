//! Desired state of switches: their ports and segments.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proto_types::{SwitchId, Vni};

use crate::catalog::entity::FabricMode;
use crate::desired::placement::{ImportCache, PortPlacement, SessionIntent, placement};
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
    /// The place of the port.
    pub place: PortPlacement,
    /// Its BGP session. `None` means that the switch speaks to nobody there.
    pub session: Option<SessionIntent>,
}

/// A VRF that a port of the switch is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VrfIntent {
    /// VNI of its routes: the number of the tenant's VRF.
    pub l3_vni: Vni,
}

/// Number of a VRF's routing table without its L3 VNI. Tables below belong to the kernel and to
/// VRFs of the operator.
const TABLE_BASE: u32 = 1_000_000;

impl VrfIntent {
    /// Name of the VRF on the switch.
    pub fn name(self) -> String {
        format!("Vrf{}", self.l3_vni)
    }
    /// Routing table on the switch.
    pub fn table(self) -> u32 {
        TABLE_BASE + self.l3_vni.get()
    }
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
    /// How the partition's switches connect the ports of a tenant.
    pub mode: FabricMode,
    /// Router id of the switch: its tunnel end. `None` means that it has none.
    pub router_id: Option<IpAddr>,
    /// VRFs by VNI. Empty unless the mode is EVPN.
    pub vrfs: Vec<VrfIntent>,
    /// Ports by name.
    pub ports: Vec<PortIntent>,
    /// Segments by VNI.
    pub segments: Vec<SegmentIntent>,
}

/// The desired state of all ports of a switch.
pub(super) fn ports(
    tables: &Tables,
    switch: &Switch,
    imports: &mut ImportCache,
) -> Vec<PortIntent> {
    let intent = |(name, port): (&String, &SwitchPort)| {
        let vni = port_vni(tables, switch, name);
        let (place, session) = placement(tables, switch, name, vni, imports);
        PortIntent {
            name: name.clone(),
            vni,
            admin_up: port.admin_up,
            place,
            session,
        }
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
