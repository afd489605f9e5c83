//! Index of pool hosts: by pool, by shape with the free ones of each, by claim, by project.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{ClaimId, MachineId, PoolId, ProjectId, Timestamp};

use crate::pool::entity::{
    CompiledPolicies, DeployPolicy, HostPool, HostShape, MetadataFilter, PoolHost,
};
use crate::tables::index::{Index, Indexed, insert, remove, subtract};

/// A rack as a key: its hash first, so that claims do not all begin with the same rack.
type RackKey = (u64, String);

/// Lookups of hosts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HostIndex {
    /// Hosts of a pool.
    pub(crate) pools: BTreeMap<PoolId, BTreeSet<MachineId>>,
    /// Hosts that are alike, by their shape.
    pub(crate) shapes: BTreeMap<HostShape, ShapeHosts>,
    /// Host of a claim.
    pub(crate) bound: BTreeMap<ClaimId, MachineId>,
    /// Bound hosts of a project.
    pub(crate) projects: BTreeMap<ProjectId, BTreeSet<MachineId>>,
    /// Hosts that are reserved, by project and key.
    pub(crate) reserved: BTreeMap<(ProjectId, String), BTreeSet<MachineId>>,
    /// Ends of reservations.
    pub(crate) reservation_ends: BTreeSet<(Timestamp, MachineId)>,
    /// Hosts that nobody has and that are not ready.
    pub(crate) benched: BTreeSet<MachineId>,
    /// Bound hosts whose project the policies do not admit any more, by that time.
    pub(crate) revoked: BTreeSet<(Timestamp, MachineId)>,
    /// Policies of pools, compiled.
    pub(crate) policies: BTreeMap<PoolId, CompiledPolicies>,
    /// Rules of the metadata that pools publish, compiled. A pool that publishes none has no entry.
    pub(crate) metadata: BTreeMap<PoolId, MetadataFilter>,
    /// Policies of hosts, compiled.
    pub(crate) narrowing: BTreeMap<Vec<DeployPolicy>, CompiledPolicies>,
    /// Number of hosts with a list of policies.
    narrowing_hosts: BTreeMap<Vec<DeployPolicy>, usize>,
    /// Pools with hosts that were not held against the policies since these changed.
    pub(crate) rechecks: BTreeSet<PoolId>,
}

/// The hosts of a shape.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ShapeHosts {
    /// Number of hosts, bound ones included.
    pub(crate) members: usize,
    /// Number of those that are out of service.
    pub(crate) cordoned: usize,
    /// Free hosts by rack, those with the fewest installations first.
    pub(crate) free: BTreeMap<RackKey, BTreeSet<(u32, MachineId)>>,
}

/// The key of a rack.
fn rack_key(rack: &str) -> RackKey {
    // FNV-1a: the hasher of the standard library may differ between builds.
    let hash = rack.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash, rack.to_owned())
}

impl HostIndex {
    /// The shapes of a pool, with their hosts.
    pub(crate) fn shapes_of(
        &self,
        pool: &PoolId,
    ) -> impl Iterator<Item = (&HostShape, &ShapeHosts)> {
        let first = HostShape::first_of(pool.clone());
        let pool = pool.clone();
        let shapes = self.shapes.range(first..);
        shapes.take_while(move |(shape, _)| shape.pool == pool)
    }

    /// `true` if there is no pool, so that nothing has to be looked at.
    pub(crate) fn has_no_pool(&self) -> bool {
        self.policies.is_empty()
    }
}

/// `true` if the host is out of service: nobody gets it before an administrator acts.
fn is_out_of_service(host: &PoolHost) -> bool {
    host.cordon.is_some() || host.quarantine.is_some()
}

/// `true` if nobody has the host and its machine is not ready.
fn is_benched(host: &PoolHost) -> bool {
    host.binding.is_none() && !host.seen.is_ready
}

impl Indexed for PoolHost {
    fn add_to(&self, index: &mut Index) {
        let hosts = &mut index.hosts;
        insert(&mut hosts.pools, self.pool.clone(), self.machine);
        let alike = hosts.shapes.entry(HostShape::of(self)).or_default();
        alike.members += 1;
        alike.cordoned += usize::from(is_out_of_service(self));
        if self.is_free() {
            let place = (self.provisions, self.machine);
            insert(&mut alike.free, rack_key(&self.seen.rack), place);
        }
        if is_benched(self) {
            hosts.benched.insert(self.machine);
        }
        if let Some(binding) = &self.binding {
            hosts.bound.insert(binding.claim, self.machine);
            insert(&mut hosts.projects, binding.project, self.machine);
            if let Some(at) = binding.revoked_at {
                hosts.revoked.insert((at, self.machine));
            }
        }
        if let Some(reserved) = &self.reserved {
            let key = (reserved.project, reserved.key.clone());
            insert(&mut hosts.reserved, key, self.machine);
            hosts
                .reservation_ends
                .insert((reserved.until, self.machine));
        }
        if !self.only.is_empty() {
            *hosts.narrowing_hosts.entry(self.only.clone()).or_default() += 1;
            let compiled = hosts.narrowing.entry(self.only.clone());
            compiled.or_insert_with(|| CompiledPolicies::of(&self.only));
        }
    }
    fn remove_from(&self, index: &mut Index) {
        let hosts = &mut index.hosts;
        remove(&mut hosts.pools, &self.pool, &self.machine);
        let shape = HostShape::of(self);
        if let Some(alike) = hosts.shapes.get_mut(&shape) {
            alike.members = alike.members.saturating_sub(1);
            let cordoned = usize::from(is_out_of_service(self));
            alike.cordoned = alike.cordoned.saturating_sub(cordoned);
            let place = (self.provisions, self.machine);
            remove(&mut alike.free, &rack_key(&self.seen.rack), &place);
            if alike.members == 0 {
                hosts.shapes.remove(&shape);
            }
        }
        hosts.benched.remove(&self.machine);
        if let Some(binding) = &self.binding {
            hosts.bound.remove(&binding.claim);
            remove(&mut hosts.projects, &binding.project, &self.machine);
            if let Some(at) = binding.revoked_at {
                hosts.revoked.remove(&(at, self.machine));
            }
        }
        if let Some(reserved) = &self.reserved {
            let key = (reserved.project, reserved.key.clone());
            remove(&mut hosts.reserved, &key, &self.machine);
            let end = (reserved.until, self.machine);
            hosts.reservation_ends.remove(&end);
        }
        if !self.only.is_empty() {
            subtract(&mut hosts.narrowing_hosts, self.only.clone());
            if !hosts.narrowing_hosts.contains_key(&self.only) {
                hosts.narrowing.remove(&self.only);
            }
        }
    }
}

impl Indexed for HostPool {
    fn add_to(&self, index: &mut Index) {
        let hosts = &mut index.hosts;
        let compiled = CompiledPolicies::of(&self.policies);
        hosts.policies.insert(self.id.clone(), compiled);
        if !self.metadata.is_empty() {
            let filter = MetadataFilter::of(&self.metadata);
            hosts.metadata.insert(self.id.clone(), filter);
        }
        if self.unchecked_from.is_some() {
            hosts.rechecks.insert(self.id.clone());
        }
    }
    fn remove_from(&self, index: &mut Index) {
        index.hosts.policies.remove(&self.id);
        index.hosts.metadata.remove(&self.id);
        index.hosts.rechecks.remove(&self.id);
    }
}
