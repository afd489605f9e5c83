//! Membership of switches in segments and the filters of their ports, updated incrementally: a
//! change of one machine costs as much as its switches have ports, however large the partition is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use proto_errors::Error;
use proto_types::{PartitionId, SwitchId, Vni};

use crate::catalog::entity::{Partition, SEGMENT_MTU_DEFAULT};
use crate::desired::announcer::Announcer;
use crate::desired::filters::Filters;
use crate::desired::gateway::{GatewayIntent, bridged_segment};
use crate::desired::port::{PortIntent, PortPlace};
use crate::desired::port_plan::{FilterPlan, PortPlan, port_plans};
use crate::desired::segment_key::SegmentKey;
use crate::desired::switch::{SegmentIntent, SwitchDesired, VrfIntent};
use crate::machine::entity::Machine;
use crate::switch::entity::Switch;
use crate::tables::Change;
use crate::tables::{Kind, Record, Tables};

/// The desired state of every switch. Derived from the tables, never stored.
///
/// Invariant: after every change was taken in, it equals [`Fabric::of`] the same tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fabric {
    sites: BTreeMap<PartitionId, SiteFabric>,
    leaves: BTreeMap<SwitchId, Leaf>,
    /// Tunnel endpoints of the member switches by segment.
    members: BTreeMap<SegmentKey, BTreeMap<SwitchId, IpAddr>>,
    /// Prefixes that machines may announce.
    filters: Filters,
}

/// Settings of a partition that apply to all of its switches.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SiteFabric {
    provisioning: Vni,
    mtu: u32,
    exits: Vec<IpAddr>,
    switches: BTreeSet<SwitchId>,
}

/// A switch, as far as the fabric depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Leaf {
    partition: PartitionId,
    vtep: Option<IpAddr>,
    /// `true` if the other switches of a segment find its tunnel endpoint by EVPN.
    has_evpn: bool,
    is_drained: bool,
    ports: Vec<PortPlan>,
}

impl SiteFabric {
    fn of(partition: Option<&Arc<Partition>>, switches: BTreeSet<SwitchId>) -> Self {
        Self {
            provisioning: partition.map(|p| p.provisioning_vni()).unwrap_or_default(),
            mtu: partition.map_or(SEGMENT_MTU_DEFAULT, |p| p.segment_mtu()),
            exits: partition.map(|p| p.exit_vteps()).unwrap_or_default(),
            switches,
        }
    }
}

impl Leaf {
    fn of(tables: &Tables, switch: &Switch) -> Self {
        Self {
            partition: switch.partition.clone(),
            vtep: switch.vtep_ip,
            has_evpn: tables
                .get::<Partition>(&switch.partition)
                .is_some_and(|partition| partition.has_evpn()),
            is_drained: switch.drain.is_some(),
            ports: port_plans(tables, switch),
        }
    }

    fn segment(&self, vni: Vni) -> SegmentKey {
        let partition = self.partition.clone();
        SegmentKey { partition, vni }
    }

    /// Segments in which the switch has a port.
    fn segments(&self) -> BTreeSet<Vni> {
        self.vnis(PortPlace::Segment)
    }

    /// VNIs of the ports in places of a kind.
    fn vnis(&self, place: PortPlace) -> BTreeSet<Vni> {
        let ports = self.ports.iter().filter(|port| port.place == place);
        let vnis = ports.map(|port| port.vni);
        vnis.filter(|vni| *vni != Vni::NONE).collect()
    }

    /// The segment of the bridged machines of a VRF. The prefixes of a network are the same at each
    /// of its machines.
    fn bridged(&self, vrf: Vni, mtu: u32) -> Option<SegmentIntent> {
        let is_in = |port: &&PortPlan| port.place == PortPlace::Bridged && port.vni == vrf;
        let ports = self.ports.iter().filter(is_in);
        let prefixes = ports.filter_map(|port| port.bridged.as_ref());
        let prefixes = prefixes.flat_map(|prefixes| prefixes.iter());
        Some(SegmentIntent {
            vni: bridged_segment(vrf)?,
            provisioning: false,
            remote_vteps: BTreeSet::new(),
            mtu,
            gateway: GatewayIntent::new(vrf, prefixes),
        })
    }

    /// VRFs of its ports and of the gateways of its segments.
    fn vrfs(&self) -> BTreeSet<Vni> {
        let mut vrfs = self.vnis(PortPlace::Routed);
        vrfs.extend(self.vnis(PortPlace::Bridged));
        vrfs
    }

    /// The announcers at its ports.
    fn announcers(&self) -> BTreeSet<&Arc<Announcer>> {
        let filters = self.ports.iter().filter_map(|port| port.filter.as_ref());
        filters.flat_map(FilterPlan::announcers).collect()
    }

    /// Segments in which the other members need its tunnel endpoint, with that endpoint.
    fn memberships(&self) -> BTreeMap<SegmentKey, IpAddr> {
        let Some(vtep) = self.vtep.filter(|_| !self.has_evpn) else {
            return BTreeMap::new();
        };
        let segments = self.segments().into_iter();
        segments.map(|vni| (self.segment(vni), vtep)).collect()
    }
}

impl Fabric {
    /// Builds the fabric from the tables.
    pub fn of(tables: &Tables) -> Self {
        let mut fabric = Self::default();
        for switch in tables.all::<Switch>() {
            fabric.look_at(tables, &switch.id);
        }
        fabric
    }

    /// Takes in changes, and returns the switches whose desired state may differ now. `tables` may
    /// be ahead of the changes: a change that was seen early has no effect when it comes.
    pub fn take(&mut self, tables: &Tables, changes: &[Change]) -> BTreeSet<SwitchId> {
        let (mut looks, mut concerned) = (BTreeSet::new(), BTreeSet::new());
        let mut announcers = BTreeSet::new();
        for change in changes {
            // The record before as well: a machine that moved leaves the switch that it was at.
            for record in [&change.before, &change.record].into_iter().flatten() {
                match record {
                    Record::Switch(switch) => {
                        looks.insert(switch.id.clone());
                    }
                    Record::Machine(machine) => {
                        looks.extend(switches(machine));
                    }
                    Record::Partition(partition) => {
                        // The ports depend on the provisioning segment: all switches of the
                        // partition are read again.
                        let found = self.sites.get(&partition.id).map(|site| &site.switches);
                        looks.extend(found.into_iter().flatten().cloned());
                        concerned.extend(self.renew_site(tables, &partition.id));
                    }
                    Record::Ip(ip) => announcers.extend(self.filters.of_address(ip)),
                    Record::Network(network) => {
                        announcers.extend(self.filters.of_network(tables, &network.id));
                    }
                    _ => {}
                }
            }
        }
        for id in looks {
            concerned.extend(self.look_at(tables, &id));
        }
        for announcer in announcers {
            concerned.extend(self.filters.renew(tables, &announcer));
        }
        concerned
    }

    /// The desired state of a switch.
    ///
    /// # Errors
    /// `NotFound` if the switch is not registered.
    pub fn desired(&self, id: &SwitchId) -> Result<SwitchDesired, Error> {
        let absent = || Error::not_found(Kind::Switch.as_str(), id);
        let leaf = self.leaves.get(id).ok_or_else(absent)?;
        let site = self.sites.get(&leaf.partition).ok_or_else(absent)?;
        let segments = leaf.segments().into_iter().map(|vni| {
            let provisioning = vni == site.provisioning;
            let members = self.members.get(&leaf.segment(vni));
            let others = members
                .into_iter()
                .flatten()
                .filter(|(member, _)| *member != id);
            let mut remote_vteps: BTreeSet<_> = others.map(|(_, vtep)| *vtep).collect();
            // Machines without a tenant are not reachable from outside of the partition.
            if !provisioning && !leaf.has_evpn {
                remote_vteps.extend(&site.exits);
            }
            SegmentIntent {
                vni,
                provisioning,
                remote_vteps,
                mtu: site.mtu,
                gateway: None,
            }
        });
        let bridged = leaf.vnis(PortPlace::Bridged).into_iter();
        let bridged = bridged.filter_map(|vrf| leaf.bridged(vrf, site.mtu));
        Ok(SwitchDesired {
            is_drained: leaf.is_drained,
            segments: segments.chain(bridged).collect(),
            ports: leaf.ports.iter().map(|port| self.intent(port)).collect(),
            vrfs: leaf
                .vrfs()
                .into_iter()
                .map(|vni| VrfIntent { vni })
                .collect(),
        })
    }

    fn intent(&self, port: &PortPlan) -> PortIntent {
        // An announcer of a leaf is always there; without prefixes nothing would pass.
        let prefixes =
            |announcer: &Arc<Announcer>| self.filters.prefixes(announcer).unwrap_or_default();
        let filter = port.filter.as_ref();
        let filter = filter.map(|filter| filter.resolve(prefixes));
        PortIntent {
            name: port.name.clone(),
            vni: port.vni,
            admin_up: port.admin_up,
            place: port.place,
            filter,
        }
    }

    /// Reads a switch again, and returns the switches whose desired state that changes.
    fn look_at(&mut self, tables: &Tables, id: &SwitchId) -> BTreeSet<SwitchId> {
        let now = tables
            .get::<Switch>(id)
            .map(|switch| Leaf::of(tables, switch));
        let before = self.leaves.remove(id);
        let mut concerned = BTreeSet::new();
        if before != now {
            concerned.insert(id.clone());
            let was = before.as_ref().map(Leaf::memberships).unwrap_or_default();
            let is = now.as_ref().map(Leaf::memberships).unwrap_or_default();
            // Only a membership that came, went or moved concerns the other members: most changes
            // of a port leave the others alone.
            for (segment, vtep) in &was {
                if is.get(segment) != Some(vtep) {
                    concerned.extend(self.leave(segment, id));
                }
            }
            for (segment, vtep) in is {
                if was.get(&segment) != Some(&vtep) {
                    let members = self.members.entry(segment).or_default();
                    concerned.extend(members.keys().cloned());
                    members.insert(id.clone(), vtep);
                }
            }
            self.share(tables, id, before.as_ref(), now.as_ref());
            self.settle(tables, id, before.as_ref(), now.as_ref());
        }
        if let Some(leaf) = now {
            self.leaves.insert(id.clone(), leaf);
        }
        concerned
    }

    /// Removes a switch from a segment, and returns the remaining members.
    fn leave(&mut self, segment: &SegmentKey, id: &SwitchId) -> Vec<SwitchId> {
        let Some(members) = self.members.get_mut(segment) else {
            return Vec::new();
        };
        members.remove(id);
        let left: Vec<_> = members.keys().cloned().collect();
        if left.is_empty() {
            self.members.remove(segment);
        }
        left
    }

    /// Moves a switch from the announcers that it used to those that it uses.
    fn share(&mut self, tables: &Tables, id: &SwitchId, was: Option<&Leaf>, is: Option<&Leaf>) {
        let was = was.map(Leaf::announcers).unwrap_or_default();
        let is = is.map(Leaf::announcers).unwrap_or_default();
        for announcer in is.difference(&was) {
            self.filters.enter(tables, announcer, id);
        }
        for announcer in was.difference(&is) {
            self.filters.leave(announcer, id);
        }
    }

    /// Moves a switch from the partition that it was in to the one that it is in.
    fn settle(&mut self, tables: &Tables, id: &SwitchId, was: Option<&Leaf>, is: Option<&Leaf>) {
        let (was, is) = (
            was.map(|leaf| &leaf.partition),
            is.map(|leaf| &leaf.partition),
        );
        if was == is {
            return;
        }
        if let Some(site) = was.and_then(|partition| self.sites.get_mut(partition)) {
            site.switches.remove(id);
        }
        if let Some(partition) = was {
            self.sites
                .retain(|name, site| name != partition || !site.switches.is_empty());
        }
        if let Some(partition) = is {
            let new = || SiteFabric::of(tables.get::<Partition>(partition), BTreeSet::new());
            let site = self.sites.entry(partition.clone()).or_insert_with(new);
            site.switches.insert(id.clone());
        }
    }

    /// Reads a partition's settings again, and returns all of its switches if the settings differ.
    fn renew_site(&mut self, tables: &Tables, partition: &PartitionId) -> BTreeSet<SwitchId> {
        let Some(site) = self.sites.get_mut(partition) else {
            return BTreeSet::new();
        };
        let fresh = SiteFabric::of(tables.get::<Partition>(partition), site.switches.clone());
        if fresh == *site {
            return BTreeSet::new();
        }
        *site = fresh;
        site.switches.clone()
    }
}

/// Switches that a machine is cabled to.
fn switches(machine: &Machine) -> impl Iterator<Item = SwitchId> + '_ {
    machine.links.iter().map(|link| link.switch.clone())
}
