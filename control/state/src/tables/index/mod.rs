//! Indexes: derived from the tables, never stored, rebuilt by loading.

mod audit;
mod claims;
mod hosts;
mod identity;
mod machine;
mod network;
mod nodes;
mod switch;
mod tenancy;
mod tenure;

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{
    BootTicketId, Digest, MacAddr, MachineId, NetworkId, NodeAllocationId, OrderId, PartitionId,
    ProjectId, SizeId, SwitchId, TenantId, Timestamp, TokenId, TraitName,
};

use crate::machine::entity::MachinePool;
use crate::network::entity::IpKey;

pub(crate) use claims::{ClaimIndex, QueuePlace};
pub(crate) use hosts::{HostIndex, ShapeHosts};
pub(crate) use nodes::NodeIndex;

/// Lookups of objects by other fields than their key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Index {
    /// Machine at a switch port.
    pub(crate) port_machine: BTreeMap<(SwitchId, String), MachineId>,
    /// Machines that report a switch port as their neighbour, known or not.
    pub(crate) claimants: BTreeMap<(SwitchId, String), BTreeSet<MachineId>>,
    /// Machines that report a network card with a MAC address.
    pub(crate) card_machines: BTreeMap<MacAddr, BTreeSet<MachineId>>,
    /// Switch ports that report a MAC address as their neighbour, of switches whose agent reports
    /// neighbours.
    pub(crate) heard: BTreeMap<MacAddr, BTreeSet<(SwitchId, String)>>,
    /// Machine that has an AS number.
    pub(crate) asn_machine: BTreeMap<u32, MachineId>,
    /// Machines that a project has.
    pub(crate) project_machines: BTreeMap<ProjectId, BTreeSet<MachineId>>,
    /// Firewalls in a network, with the project that has each.
    pub(crate) network_firewalls: BTreeMap<NetworkId, BTreeSet<(ProjectId, MachineId)>>,
    /// Projects by direct member.
    pub(crate) member_projects: BTreeMap<TenantId, BTreeSet<ProjectId>>,
    /// Number of networks of a project.
    pub(crate) project_networks: BTreeMap<ProjectId, u32>,
    /// Addresses that a project has.
    pub(crate) project_ips: BTreeMap<ProjectId, BTreeSet<IpKey>>,
    /// Machines in a partition.
    pub(crate) partition_machines: BTreeMap<PartitionId, BTreeSet<MachineId>>,
    /// Clean machines in phase `Waiting`, by partition and size, then by rack. They may still be
    /// dead.
    pub(crate) offered: BTreeMap<(PartitionId, SizeId), BTreeMap<String, BTreeSet<MachineId>>>,
    /// Number of machines by the address of their BMC.
    pub(crate) bmc_machines: BTreeMap<(PartitionId, String), usize>,
    /// Number of machines of a partition that only its BMC agent has reported.
    pub(crate) bmc_only: BTreeMap<PartitionId, usize>,
    /// Number of ports in a segment, as their switches report them.
    pub(crate) observed_vnis: BTreeMap<u32, usize>,
    /// Machines of a partition that were seen and never registered, and of which no BMC is known,
    /// by the time when they became known.
    pub(crate) strangers: BTreeMap<PartitionId, BTreeSet<(Timestamp, MachineId)>>,
    /// Machines of a partition by the time when they became known, without those that only a BMC
    /// agent has reported.
    pub(crate) arrivals: BTreeMap<PartitionId, BTreeSet<(Timestamp, MachineId)>>,
    /// Machines of a partition by the MAC address that they were first seen with.
    pub(crate) first_macs: BTreeMap<(PartitionId, MacAddr), BTreeSet<MachineId>>,
    /// Number of networks by VRF id.
    pub(crate) vrf_networks: BTreeMap<u32, usize>,
    /// Child networks of a network.
    pub(crate) children: BTreeMap<NetworkId, BTreeSet<NetworkId>>,
    /// Addresses of a network.
    pub(crate) network_ips: BTreeMap<NetworkId, BTreeSet<IpKey>>,
    /// Addresses that a machine has.
    pub(crate) machine_ips: BTreeMap<MachineId, BTreeSet<IpKey>>,
    /// Orders of a machine by sequence.
    pub(crate) machine_orders: BTreeMap<MachineId, BTreeMap<u64, OrderId>>,
    /// Open orders of a partition.
    pub(crate) open_orders: BTreeMap<PartitionId, BTreeSet<OrderId>>,
    /// Boot tickets of a machine.
    pub(crate) machine_boot_tickets: BTreeMap<MachineId, BTreeSet<BootTicketId>>,
    /// Certificates for a machine.
    pub(crate) machine_certificates: BTreeMap<MachineId, BTreeSet<String>>,
    /// Tokens that name a machine, as the subject of a role or of a permission. Ids of projects
    /// have the same form and are in here as well.
    pub(crate) machine_tokens: BTreeMap<MachineId, BTreeSet<TokenId>>,
    /// Tokens by the holder whose budget they count against.
    pub(crate) holder_tokens: BTreeMap<String, BTreeSet<TokenId>>,
    /// Tenants by the user that created them, without personal tenants.
    pub(crate) maker_tenants: BTreeMap<String, BTreeSet<TenantId>>,
    /// Projects of a tenant.
    pub(crate) tenant_projects: BTreeMap<TenantId, BTreeSet<ProjectId>>,
    /// Open invites by the login of the inviter.
    pub(crate) inviter_invites: BTreeMap<String, BTreeSet<Digest>>,
    /// Audit records by the caller whose share of the trail they count against.
    pub(crate) audit_shares: BTreeMap<String, BTreeSet<u64>>,
    /// Gaps of the audit trail.
    pub(crate) audit_gaps: BTreeSet<u64>,
    /// The audit record that lists the gaps.
    pub(crate) audit_retention: Option<u64>,
    /// Machines that a project owns or leases.
    pub(crate) tenured_machines: BTreeMap<ProjectId, BTreeSet<MachineId>>,
    /// Leased machines by the time of the next change that a tick makes of the lease.
    pub(crate) due_leases: BTreeSet<(Timestamp, MachineId)>,
    /// Number of machines by canonical resource class and pool.
    pub(crate) class_machines: BTreeMap<(String, MachinePool), usize>,
    /// Machines that node allocations may choose, by canonical resource class and pool. They may still
    /// be dead.
    pub(crate) free_machines: BTreeMap<(String, MachinePool), BTreeSet<MachineId>>,
    /// The same machines by each of their traits too.
    pub(crate) free_traits: BTreeMap<(String, MachinePool, TraitName), BTreeSet<MachineId>>,
    /// Node allocations of a project, and of administrators.
    pub(crate) pool_allocations: BTreeMap<MachinePool, BTreeSet<NodeAllocationId>>,
    /// Node allocation of a name.
    pub(crate) allocation_names: BTreeMap<(MachinePool, String), NodeAllocationId>,
    /// Claims.
    pub(crate) claims: ClaimIndex,
    /// Pools and their hosts.
    pub(crate) hosts: HostIndex,
    /// Nodes, their ports and documents.
    pub(crate) nodes: NodeIndex,
}

/// An object that is in indexes. `remove_from` removes exactly what `add_to` adds: the index must
/// equal the one that loading the tables builds.
pub(crate) trait Indexed {
    fn add_to(&self, index: &mut Index);
    fn remove_from(&self, index: &mut Index);
}

/// Adds a value to the set of a key.
pub(crate) fn insert<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: K, value: V) {
    map.entry(key).or_default().insert(value);
}

/// Removes a value from the set of a key, and the set when it is empty: an empty set would make
/// the index differ from a freshly built one.
pub(crate) fn remove<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}

/// Decrements the count of a key, and removes it at 0.
pub(crate) fn subtract<K: Ord + Clone>(counts: &mut BTreeMap<K, usize>, key: K) {
    let count = counts.entry(key.clone()).or_default();
    *count = count.saturating_sub(1);
    if *count == 0 {
        counts.remove(&key);
    }
}
