//! The place of a port in a partition whose switches speak EVPN, and the session of its machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use proto_types::{Asn, NetworkId, ProjectId, VNI_MAX, Vni};

use crate::catalog::entity::{FabricMode, Partition};
use crate::desired::bgp::{machine_cidrs, of_firewall};
use crate::machine::entity::{Allocation, AllocationNetwork, AllocationType, Machine};
use crate::machine::read::vni_of_machine;
use crate::switch::entity::Switch;
use crate::tables::Tables;

/// The place of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortPlacement {
    /// The mode is [`FabricMode::Static`]: the port is in the segment of its VNI.
    Static,
    /// The port forwards nothing.
    Quarantine,
    /// In the segment of its VNI, out of reach of the other machines.
    PrivateSegment,
    /// Routed in the VRF whose L3 VNI is its VNI.
    Routed,
    /// Routed in the default VRF: a firewall.
    Underlay,
}

/// The BGP session of a port. Routes that it does not name are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionIntent {
    /// Prefixes that the machine may announce, with all longer ones.
    pub imports: Arc<BTreeSet<IpNet>>,
    /// AS number of the machine: a path with any other is refused.
    pub asn: Asn,
    /// VNIs of a firewall whose EVPN routes are exchanged.
    pub vnis: BTreeSet<u32>,
}

/// Prefixes that the machines of a project may announce, by their own child networks. Machines with
/// the same networks share them, so that many machines of a project cost one look at its addresses.
#[derive(Debug, Default)]
pub(super) struct ImportCache(BTreeMap<ImportKey, Arc<BTreeSet<IpNet>>>);

/// The part of an allocation that its imports depend on.
type ImportKey = (ProjectId, Vec<(NetworkId, Vec<IpNet>)>);

impl ImportCache {
    fn of(&mut self, tables: &Tables, allocation: &Allocation) -> Arc<BTreeSet<IpNet>> {
        let networks = own_children(allocation);
        let networks = networks.map(|network| (network.network.clone(), network.prefixes.clone()));
        let key = (allocation.project, networks.collect());
        let compute = || Arc::new(machine_cidrs(tables, allocation, is_own(allocation)));
        Arc::clone(self.0.entry(key).or_insert_with(compute))
    }
}

/// `true` for the child networks of the project itself. The prefix of another project's shared
/// network is not the machine's to announce: only its addresses there are.
pub(super) fn is_own(allocation: &Allocation) -> impl Fn(&AllocationNetwork) -> bool {
    let project = allocation.project;
    move |network| network.kind.is_child() && network.project == Some(project)
}

pub(super) fn own_children(allocation: &Allocation) -> impl Iterator<Item = &AllocationNetwork> {
    let is_own = is_own(allocation);
    let networks = allocation.networks.iter();
    networks.filter(move |network| is_own(network))
}

/// The place of a port with this VNI, and its session.
pub(super) fn placement(
    tables: &Tables,
    switch: &Switch,
    port: &str,
    vni: Vni,
    imports: &mut ImportCache,
) -> (PortPlacement, Option<SessionIntent>) {
    let partition = tables.get::<Partition>(&switch.partition);
    let mode = partition.map(|p| p.fabric_mode()).unwrap_or_default();
    if mode == FabricMode::Static {
        return (PortPlacement::Static, None);
    }
    // A switch reports the highest VNI for a port that is in the default VRF by mistake: a tenant
    // with this number could not be told from it.
    if vni == Vni::NONE || vni.get() == VNI_MAX {
        return (PortPlacement::Quarantine, None);
    }
    if partition.is_some_and(|p| p.provisioning_vni() == vni) {
        return (PortPlacement::PrivateSegment, None);
    }
    let at = (switch.id.clone(), port.to_owned());
    let machine = tables.index().port_machine.get(&at);
    let machine = machine.and_then(|id| tables.get::<Machine>(id));
    // A port that a restore pinned to a VNI which is not its machine's gets no session: the filter
    // of the machine would be one of another tenant.
    let machine = machine.filter(|_| vni_of_machine(tables, switch, port) == vni);
    let Some(allocation) = machine.and_then(|machine| machine.allocation.as_ref()) else {
        return (PortPlacement::Routed, None);
    };
    match allocation.kind {
        AllocationType::Machine => {
            let session = SessionIntent {
                imports: imports.of(tables, allocation),
                asn: allocation.asn,
                vnis: BTreeSet::new(),
            };
            (PortPlacement::Routed, Some(session))
        }
        AllocationType::Firewall => {
            let filter = of_firewall(allocation);
            let session = SessionIntent {
                imports: Arc::new(filter.cidrs),
                asn: allocation.asn,
                vnis: filter.vnis,
            };
            (PortPlacement::Underlay, Some(session))
        }
    }
}
