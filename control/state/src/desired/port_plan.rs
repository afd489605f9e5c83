//! The place of each port of a switch, with the source of its filter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use proto_types::{Asn, Vni};

use crate::catalog::entity::{Networking, Partition};
use crate::desired::announcer::Announcer;
use crate::desired::bgp::of_firewall;
use crate::desired::filters;
use crate::desired::gateway::bridged_segment;
use crate::desired::network_plan::{NetworkPlan, network_plans};
use crate::desired::port::{PortFilter, PortIntent, PortPlace};
use crate::machine::entity::{Allocation, AllocationType, Machine, Segment};
use crate::machine::read::port_vni;
use crate::switch::entity::{Switch, SwitchPort};
use crate::tables::Tables;

/// A port, as far as its switch and the machine at it decide. The prefixes of servers come from
/// their announcers, which the machines of a project share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PortPlan {
    pub(super) name: String,
    /// Segment, or L3 VNI of the tenant's VRF.
    pub(super) vni: Vni,
    pub(super) admin_up: bool,
    pub(super) place: PortPlace,
    /// `None` means that nothing may be announced on the port.
    pub(super) filter: Option<FilterPlan>,
    /// Prefixes of the network of a bridged machine.
    pub(super) bridged: Option<Arc<BTreeSet<IpNet>>>,
}

/// The source of a port's filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FilterPlan {
    /// The filter of a server.
    Server { asn: Asn, announcer: Arc<Announcer> },
    /// The filter of a firewall: its allocation decides, and its project's addresses.
    Firewall {
        asn: Asn,
        prefixes: Arc<BTreeSet<IpNet>>,
        networks: BTreeMap<u32, NetworkPlan>,
    },
}

/// All ports of a switch. In a partition without EVPN every port is in a segment.
pub(super) fn port_plans(tables: &Tables, switch: &Switch) -> Vec<PortPlan> {
    let partition = tables.get::<Partition>(&switch.partition);
    let partition = partition.map(AsRef::as_ref);
    let evpn = partition.filter(|partition| partition.has_evpn());
    let provisioning = evpn.map(|partition| partition.provisioning_vni());
    let plan = |(name, port): (&String, &SwitchPort)| {
        let vni = port_vni(tables, switch, name);
        let plan = PortPlan {
            name: name.clone(),
            vni,
            admin_up: port.admin_up,
            place: PortPlace::Segment,
            filter: None,
            bridged: None,
        };
        let is_tenants = vni != Vni::NONE && provisioning.is_some_and(|boots| vni != boots);
        let plan = if is_tenants {
            in_tenants_place(tables, switch, plan)
        } else {
            plan
        };
        let stays = !is_moved_away(switch, partition, &plan);
        PortPlan {
            admin_up: plan.admin_up && stays,
            ..plan
        }
    };
    switch.ports.iter().map(plan).collect()
}

/// The desired ports of one switch, read from the tables alone. [`Fabric`](super::Fabric) has the
/// same for every switch, kept up with changes.
pub fn port_intents(tables: &Tables, switch: &Switch) -> Vec<PortIntent> {
    let intent = |port: PortPlan| PortIntent {
        name: port.name,
        vni: port.vni,
        admin_up: port.admin_up,
        place: port.place,
        filter: port.filter.map(|filter| {
            let read = |announcer: &Arc<Announcer>| filters::read(tables, announcer);
            filter.resolve(read)
        }),
    };
    port_plans(tables, switch).into_iter().map(intent).collect()
}

impl FilterPlan {
    /// The filter, with the prefixes that an announcer has now.
    pub(super) fn resolve(
        &self,
        prefixes_of: impl Fn(&Arc<Announcer>) -> Arc<BTreeSet<IpNet>>,
    ) -> PortFilter {
        match self {
            Self::Server { asn, announcer } => PortFilter {
                asn: *asn,
                prefixes: prefixes_of(announcer),
                vnis: BTreeSet::new(),
                networks: BTreeMap::new(),
            },
            Self::Firewall {
                asn,
                prefixes,
                networks,
            } => PortFilter {
                asn: *asn,
                prefixes: Arc::clone(prefixes),
                vnis: networks.keys().copied().collect(),
                networks: networks
                    .iter()
                    .map(|(vni, plan)| (*vni, plan.resolve(&prefixes_of)))
                    .collect(),
            },
        }
    }

    /// The announcers whose prefixes it has.
    pub(super) fn announcers(&self) -> Vec<&Arc<Announcer>> {
        match self {
            Self::Server { announcer, .. } => vec![announcer],
            Self::Firewall { networks, .. } => {
                let plans = networks.values();
                plans.flat_map(|plan| &plan.announcers).collect()
            }
        }
    }
}

/// `true` if the traffic of a bridged port goes over another switch while this one is drained. Only
/// a tenant's: a machine that boots or is wiped needs its port.
fn is_moved_away(switch: &Switch, partition: Option<&Partition>, plan: &PortPlan) -> bool {
    let boots = partition.map(Partition::provisioning_vni);
    let drain = switch.drain.as_ref();
    matches!(plan.place, PortPlace::Segment | PortPlace::Bridged)
        && plan.vni != Vni::NONE
        && boots != Some(plan.vni)
        && drain.is_some_and(|drain| drain.ports.contains(&plan.name))
}

/// The plan of a port that belongs to a tenant's VRF.
fn in_tenants_place(tables: &Tables, switch: &Switch, plan: PortPlan) -> PortPlan {
    let vrf = plan.vni;
    let at = (switch.id.clone(), plan.name.clone());
    let machine = tables.index().port_machine.get(&at);
    let machine = machine.and_then(|id| tables.get::<Machine>(id));
    let allocation = machine
        .filter(|machine| machine.segment == Segment::Tenant)
        .and_then(|machine| machine.allocation.as_ref())
        .filter(|allocation| allocation.tenant_vrf() == Some(vrf.get()));
    // A port that a restore pinned in a VRF which is not its machine's stays in there, and nothing
    // is announced on it: nobody knows whose machine that is.
    let routed = PortPlan {
        place: PortPlace::Routed,
        ..plan
    };
    let Some(allocation) = allocation else {
        return routed;
    };
    match (allocation.kind, allocation.networking) {
        (AllocationType::Firewall, _) => PortPlan {
            place: PortPlace::Underlay,
            filter: Some(firewall(allocation)),
            ..routed
        },
        (AllocationType::Machine, Networking::Routed) => PortPlan {
            filter: Some(server(allocation)),
            ..routed
        },
        // A static system is older than its partition's EVPN. It has no routing daemon either, and
        // its default route leads to the gateway that a bridged segment has.
        (AllocationType::Machine, Networking::Bridged | Networking::Static) => {
            bridged(allocation, routed)
        }
    }
}

/// The plan of a bridged machine's port. Without a VNI for the segment of its VRF it is isolated.
fn bridged(allocation: &Allocation, plan: PortPlan) -> PortPlan {
    if bridged_segment(plan.vni).is_none() {
        return PortPlan {
            vni: Vni::NONE,
            place: PortPlace::Segment,
            ..plan
        };
    }
    let mut networks = allocation.networks.iter();
    let network = networks.find(|network| network.kind.is_child() && network.vrf != 0);
    let prefixes = network.into_iter().flat_map(|network| &network.prefixes);
    let prefixes = prefixes.copied().collect();
    PortPlan {
        place: PortPlace::Bridged,
        bridged: Some(Arc::new(prefixes)),
        ..plan
    }
}

fn server(allocation: &Allocation) -> FilterPlan {
    FilterPlan::Server {
        asn: allocation.asn,
        announcer: Arc::new(Announcer::of(allocation)),
    }
}

fn firewall(allocation: &Allocation) -> FilterPlan {
    let filter = of_firewall(allocation);
    FilterPlan::Firewall {
        asn: allocation.asn,
        prefixes: Arc::new(filter.cidrs),
        networks: network_plans(allocation),
    }
}
