//! What a switch does with its ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proto_errors::Error;
use proto_types::{PartitionId, SwitchId, Vni};

use crate::entities::{Machine, Partition, Segment, Switch};
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

/// All that this switch shall do now.
pub fn switch_desired(tables: &Tables, id: &SwitchId) -> Result<SwitchDesired, Error> {
    let switch = tables.require::<Switch>(id)?;
    let partition = tables.get::<Partition>(&switch.partition);
    let provisioning = partition.map(|p| p.provisioning_vni()).unwrap_or_default();
    let mtu = partition.map_or(crate::entities::SEGMENT_MTU_DEFAULT, |p| p.segment_mtu());
    let exits = partition.map(|p| p.exit_vteps()).unwrap_or_default();
    let elsewhere = members(tables, &switch.partition, id);

    let ports: Vec<_> = switch
        .ports
        .iter()
        .map(|(name, port)| PortIntent {
            name: name.clone(),
            vni: port_vni(tables, switch, name),
            admin_up: port.admin_up,
        })
        .collect();
    let here: BTreeSet<_> = ports
        .iter()
        .map(|p| p.vni)
        .filter(|vni| *vni != Vni::NONE)
        .collect();
    let segments = here
        .into_iter()
        .map(|vni| {
            let is_provisioning = vni == provisioning;
            let mut remote_vteps = elsewhere.get(&vni).cloned().unwrap_or_default();
            if !is_provisioning {
                remote_vteps.extend(&exits);
            }
            SegmentIntent {
                vni,
                provisioning: is_provisioning,
                remote_vteps,
                mtu,
            }
        })
        .collect();
    Ok(SwitchDesired { ports, segments })
}

/// The segment that a port belongs in: that of its machine, or provisioning for one that is free.
pub fn port_vni(tables: &Tables, switch: &Switch, port: &str) -> Vni {
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
        Segment::Tenant => machine
            .allocation
            .as_ref()
            .and_then(|allocation| allocation.tenant_vrf())
            .and_then(|vrf| Vni::try_from(vrf).ok())
            .unwrap_or(Vni::NONE),
    })
}

/// Tunnel ends of the other switches of a partition by segment.
fn members(
    tables: &Tables,
    partition: &PartitionId,
    but: &SwitchId,
) -> BTreeMap<Vni, BTreeSet<IpAddr>> {
    let mut members: BTreeMap<Vni, BTreeSet<IpAddr>> = BTreeMap::new();
    let others = tables
        .all::<Switch>()
        .filter(|s| s.partition == *partition && s.id != *but);
    for switch in others {
        let Some(vtep) = switch.vtep_ip else { continue };
        for port in switch.ports.keys() {
            members
                .entry(port_vni(tables, switch, port))
                .or_default()
                .insert(vtep);
        }
    }
    members
}
