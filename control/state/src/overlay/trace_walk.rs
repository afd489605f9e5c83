//! The walk of a packet from a machine to an address, by desired state and last reports.

use std::net::IpAddr;
use std::sync::Arc;

use proto_errors::Error;
use proto_types::{MachineId, PartitionId};

use crate::catalog::entity::Partition;
use crate::desired::PortPlace;
use crate::machine::entity::{Allocation, AllocationNetwork, AllocationType, Machine, Segment};
use crate::network::entity::NetworkType;
use crate::overlay::trace::{PacketTrace, TraceHop};
use crate::overlay::trace_link::{CableEnd, TraceOrigin};
use crate::query::{partition_machines, port_machine};
use crate::switch::entity::{RoutingSession, Switch};
use crate::tables::Tables;

/// Traces a packet from a machine to an address.
///
/// # Errors
/// `NotFound` for an unknown machine.
pub fn trace_packet(tables: &Tables, from: MachineId, to: IpAddr) -> Result<PacketTrace, Error> {
    let machine = tables.require::<Machine>(&from)?;
    let mut walk = TraceWalk {
        tables,
        to,
        trace: PacketTrace::default(),
    };
    let ended = walk.start(machine);
    let mut trace = walk.trace;
    match ended {
        Ok(verdict) => {
            trace.arrives = true;
            trace.verdict = verdict;
        }
        Err(Stopped) => {
            let last = trace.hops.iter().rev().find(|hop| hop.stops);
            let text = last.map(|hop| format!("stops at {} {}: {}", hop.kind, hop.at, hop.detail));
            trace.verdict = text.unwrap_or_default();
        }
    }
    Ok(trace)
}

/// The packet stops at the last hop.
pub(super) struct Stopped;

pub(super) struct TraceWalk<'t> {
    tables: &'t Tables,
    pub(super) to: IpAddr,
    trace: PacketTrace,
}

/// A machine that has the address, or that routes to it.
pub(super) struct TraceTarget {
    pub(super) machine: Arc<Machine>,
    /// The network by which it reaches the address. `None` means that it has the address itself.
    pub(super) beyond: Option<String>,
}

impl TraceWalk<'_> {
    pub(super) fn pass(
        &mut self,
        kind: &'static str,
        at: impl ToString,
        detail: impl Into<String>,
    ) {
        self.trace.hops.push(TraceHop::pass(kind, at, detail));
    }

    pub(super) fn stop<T>(
        &mut self,
        kind: &'static str,
        at: impl ToString,
        detail: impl Into<String>,
    ) -> Result<T, Stopped> {
        self.trace.hops.push(TraceHop::stop(kind, at, detail));
        Err(Stopped)
    }

    fn start(&mut self, machine: &Arc<Machine>) -> Result<String, Stopped> {
        let id = machine.id;
        let Some(allocation) = &machine.allocation else {
            return self.stop(
                "machine",
                id,
                "is not allocated: it is in no network of a tenant",
            );
        };
        if machine.segment != Segment::Tenant {
            return self.stop(
                "machine",
                id,
                "its ports are not the tenant's yet, or no more",
            );
        }
        if has_address(allocation, None, self.to) {
            self.pass(kind_of(allocation), id, "has the address itself");
            return Ok("the address is the machine's own".to_owned());
        }
        if allocation.kind == AllocationType::Firewall {
            return self.start_firewall(machine, allocation);
        }
        let Some(vrf) = allocation.tenant_vrf() else {
            return self.stop("machine", id, "is in no tenant's network");
        };
        self.pass("machine", id, format!("sends in VRF {vrf}"));
        let here = self.enter(machine)?;
        let partition = here.switch.partition.clone();
        let Some(target) = self.target(&partition, vrf) else {
            let reason = self.no_route(&partition, vrf);
            return self.stop("leaf", &here.switch.id, reason);
        };
        let origin = TraceOrigin {
            end: here,
            firewall: None,
        };
        self.leave(&origin, vrf, &target)
    }

    /// The first cable of the sender that passes.
    pub(super) fn enter(&mut self, machine: &Machine) -> Result<CableEnd, Stopped> {
        let ends = CableEnd::all(self.tables, machine);
        if ends.is_empty() {
            return self.stop("machine", machine.id, "has no cable to a registered switch");
        }
        self.first(ends)
    }

    /// The first end that passes, a switch in service before a drained one.
    fn first(&mut self, mut ends: Vec<CableEnd>) -> Result<CableEnd, Stopped> {
        ends.sort_by_key(|end| !end.is_preferred());
        for end in ends {
            self.trace.hops.push(end.hop());
            if end.obstacle.is_none() {
                return Ok(end);
            }
        }
        Err(Stopped)
    }

    /// The machine of a VRF that has the address, or else the VRF's firewall.
    fn target(&self, partition: &PartitionId, vrf: u32) -> Option<TraceTarget> {
        if let Some(owner) = self.owner(partition, vrf) {
            return Some(owner);
        }
        partition_machines(self.tables, partition).find_map(|machine| {
            let allocation = machine.allocation.as_ref()?;
            let is_firewall = allocation.kind == AllocationType::Firewall
                && allocation.networks.iter().any(|network| network.vrf == vrf);
            let others = allocation.networks.iter();
            let mut others = others.filter(|network| network.vrf != vrf && network.vrf != 0);
            let way = others.find(|network| reaches(network, self.to))?;
            is_firewall.then(|| TraceTarget {
                machine: Arc::clone(machine),
                beyond: Some(way.network.to_string()),
            })
        })
    }

    /// The switch or firewall of a partition that has the address in the underlay, in words.
    pub(super) fn underlay_owner(&self, partition: &PartitionId) -> Option<String> {
        let to = self.to;
        let mut switches = self.tables.all::<Switch>();
        let leaf = switches.find(|leaf| leaf.vtep_ip == Some(to) && leaf.partition == *partition);
        if let Some(leaf) = leaf {
            return Some(format!("switch {}", leaf.id));
        }
        let mut machines = partition_machines(self.tables, partition);
        let firewall = machines.find(|machine| {
            let networks = machine.allocation.iter().flat_map(|of| &of.networks);
            let mut underlay = networks.filter(|network| network.kind == NetworkType::Underlay);
            underlay.any(|network| network.ips.contains(&to))
        });
        firewall.map(|firewall| format!("firewall {}", firewall.id))
    }

    /// The machine of a VRF that has the address.
    pub(super) fn owner(&self, partition: &PartitionId, vrf: u32) -> Option<TraceTarget> {
        let mut machines = partition_machines(self.tables, partition);
        let owner = machines.find(|machine| {
            let allocation = machine.allocation.as_ref();
            allocation.is_some_and(|allocation| has_address(allocation, Some(vrf), self.to))
        });
        let machine = Arc::clone(owner?);
        let beyond = None;
        Some(TraceTarget { machine, beyond })
    }

    pub(super) fn no_route(&self, partition: &PartitionId, vrf: u32) -> String {
        let to = self.to;
        let elsewhere = partition_machines(self.tables, partition).find_map(|machine| {
            let allocation = machine.allocation.as_ref()?;
            let mut networks = allocation.networks.iter();
            let network = networks.find(|network| network.ips.contains(&to))?;
            Some(format!(
                "; machine {} has it in VRF {}, which VRF {vrf} does not reach",
                machine.id, network.vrf
            ))
        });
        format!(
            "no machine of VRF {vrf} has {to}, and no firewall of it has a network with it{}",
            elsewhere.unwrap_or_default()
        )
    }

    /// From the sender's leaf to the target.
    pub(super) fn leave(
        &mut self,
        origin: &TraceOrigin,
        vrf: u32,
        target: &TraceTarget,
    ) -> Result<String, Stopped> {
        let (here, machine) = (&origin.end.switch, &target.machine);
        let kind = machine.allocation.as_deref().map_or("machine", kind_of);
        let detail = match &origin.firewall {
            Some(_) => format!("underlay: to the leaf of {kind} {}", machine.id),
            None => format!("VRF {vrf}: to {kind} {}", machine.id),
        };
        self.pass("leaf", &here.id, detail);
        if machine.segment != Segment::Tenant {
            return self.stop(
                kind,
                machine.id,
                "its ports are not the tenant's yet, or no more",
            );
        }
        let there = self.exit(here, kind, machine)?;
        let has_tunnel = there.intent.place == PortPlace::Underlay || origin.firewall.is_some();
        if there.switch.id != here.id || has_tunnel {
            self.cross(origin, &there, vrf, machine)?;
        }
        self.trace.hops.push(there.hop());
        let to = self.to;
        match &target.beyond {
            None => {
                self.pass(kind, machine.id, format!("has {to}"));
                Ok(format!("arrives at {kind} {}", machine.id))
            }
            Some(network) => {
                self.pass(
                    kind,
                    machine.id,
                    format!("routes {to} into network {network}"),
                );
                Ok(format!(
                    "reaches firewall {}, which sends it into network {network} if its rules permit",
                    machine.id
                ))
            }
        }
    }

    /// The target's cable that the packet takes.
    fn exit(
        &mut self,
        here: &Switch,
        kind: &'static str,
        machine: &Machine,
    ) -> Result<CableEnd, Stopped> {
        let mut ends = CableEnd::all(self.tables, machine);
        // A route of the same leaf is shorter than one over a tunnel.
        ends.sort_by_key(|end| end.switch.id != here.id);
        let passing = ends
            .iter()
            .position(|end| end.obstacle.is_none() && end.is_preferred());
        let passing = passing.or_else(|| ends.iter().position(|end| end.obstacle.is_none()));
        let Some(passing) = passing else {
            self.trace.hops.extend(ends.iter().map(CableEnd::hop));
            if ends.is_empty() {
                return self.stop(kind, machine.id, "has no cable to a registered switch");
            }
            return Err(Stopped);
        };
        Ok(ends.swap_remove(passing))
    }

    /// Through the tunnel of the VNI. Those of a firewall end in itself.
    fn cross(
        &mut self,
        origin: &TraceOrigin,
        there: &CableEnd,
        vni: u32,
        target: &Machine,
    ) -> Result<(), Stopped> {
        let here = &origin.end.switch;
        let at = format!("VNI {vni}");
        for leaf in [here, &there.switch] {
            if leaf.vtep_ip.is_none() {
                return self.stop("tunnel", at, format!("switch {} has no tunnels", leaf.id));
            }
            // A tunnel that ends at the same leaf needs no spine.
            let is_remote = there.switch.id != here.id;
            if let Some(reason) = self.evpn_obstacle(leaf).filter(|_| is_remote) {
                return self.stop("tunnel", at, reason);
            }
        }
        let from = match &origin.firewall {
            Some(firewall) => firewall_end(firewall),
            None => leaf_end(here),
        };
        let to = match there.intent.place {
            PortPlace::Underlay => firewall_end(target),
            _ => leaf_end(&there.switch),
        };
        self.pass("tunnel", at, format!("{from} to {to}"));
        Ok(())
    }

    /// The reason why a leaf exchanges no EVPN routes with the others. `None` also where nothing is
    /// reported.
    pub(super) fn evpn_obstacle(&self, leaf: &Switch) -> Option<String> {
        let partition = self.tables.get::<Partition>(&leaf.partition)?;
        let sessions = &leaf.health.sessions;
        if !partition.has_evpn() || sessions.is_empty() {
            return None;
        }
        // A firewall passes no routes on.
        let is_spine =
            |one: &&RoutingSession| port_machine(self.tables, &leaf.id, &one.neighbour).is_none();
        let evpn = sessions.iter().filter(|one| one.family == "l2VpnEvpn");
        let evpn = evpn.filter(is_spine);
        let is_up = evpn.into_iter().any(|one| one.is_established());
        (!is_up).then(|| format!("switch {} has no EVPN session that is established", leaf.id))
    }
}

/// The kind of the hop of a machine.
fn kind_of(allocation: &Allocation) -> &'static str {
    match allocation.kind {
        AllocationType::Machine => "machine",
        AllocationType::Firewall => "firewall",
    }
}

/// A leaf as the end of a tunnel.
fn leaf_end(leaf: &Switch) -> String {
    let vtep = leaf.vtep_ip.map(|ip| ip.to_string()).unwrap_or_default();
    format!("{} ({vtep})", leaf.id)
}

/// A firewall as the end of a tunnel.
pub(super) fn firewall_end(firewall: &Machine) -> String {
    let networks = firewall.allocation.iter().flat_map(|of| &of.networks);
    let mut underlay = networks.filter(|network| network.kind == NetworkType::Underlay);
    let ip = underlay.find_map(|network| network.ips.first());
    let ip = ip.map(ToString::to_string).unwrap_or_default();
    format!("firewall {} ({ip})", firewall.id)
}

/// `true` if a machine has the address, in networks of the VRF or in any.
fn has_address(allocation: &Allocation, vrf: Option<u32>, to: IpAddr) -> bool {
    let networks = allocation.networks.iter();
    let mut networks = networks.filter(|network| vrf.is_none_or(|vrf| network.vrf == vrf));
    networks.any(|network| network.ips.contains(&to))
}

/// `true` if a network of a firewall leads to the address.
pub(super) fn reaches(network: &AllocationNetwork, to: IpAddr) -> bool {
    let mut prefixes = network.prefixes.iter().chain(&network.destination_prefixes);
    prefixes.any(|prefix| prefix.contains(&to))
}
