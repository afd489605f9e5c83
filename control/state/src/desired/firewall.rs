//! Desired state of firewalls: their networks and the rules of all sets that are for them.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use proto_firewall::{RuleContent, RuleOwner, prefixes};
use proto_types::{AllocationId, Asn, MachineId, NetworkId, ProjectId, Timestamp};

use crate::firewall::entity::{
    FirewallRelease, FirewallRuleSet, RuleRevision, RuleSetKey, RuleTarget,
};
use crate::firewall::name_servers::name_servers;
use crate::firewall::read::{
    firewall_allocation, has_address, rule_set_keys, rule_sets_of_firewall,
};
use crate::firewall::standby::firewall_distance;
use crate::machine::entity::{Allocation, AllocationNetwork};
use crate::network::entity::{NatType, Network, NetworkType};
use crate::network::read::project_ips;
use crate::rollout::read::firewall_release;
use crate::tables::Tables;

/// The whole desired state of a firewall.
#[derive(Debug, Clone, PartialEq)]
pub struct FirewallIntent {
    /// The firewall.
    pub machine: MachineId,
    /// Its project.
    pub project: ProjectId,
    /// Its allocation.
    pub allocation: AllocationId,
    /// Its host name.
    pub hostname: String,
    /// Its AS number.
    pub asn: Asn,
    /// Number of firewalls that routes prefer to it. 0 means that it is the active one.
    pub distance: u32,
    /// Its networks.
    pub networks: Vec<FirewallNetworkIntent>,
    /// Servers that its agent asks for the names in policies, in order. Empty means that no policy
    /// with names can be in force.
    pub name_servers: Vec<IpAddr>,
    /// The release of the agent that it is to run. `None` means that it keeps its program.
    pub release: Option<Arc<FirewallRelease>>,
    /// The sets, in the order in which they decide.
    pub sets: Vec<RuleSetIntent>,
}

/// A network that a firewall joins.
#[derive(Debug, Clone, PartialEq)]
pub struct FirewallNetworkIntent {
    /// The network.
    pub network: NetworkId,
    /// Its type.
    pub kind: NetworkType,
    /// VRF and VNI; 0 means none.
    pub vrf: u32,
    /// Its prefixes. Of a private network of the firewall's project also those that its parent lets
    /// machines announce, such as those of pods: the firewall drops other sources.
    pub prefixes: Vec<IpNet>,
    /// `true` if flows from private networks into it get the firewall's address.
    pub masquerades: bool,
    /// Of an external network of others: the project's addresses in it, as disjoint prefixes. The
    /// firewall drops sources of the network that are another project's. `None` means that all of
    /// its addresses may be the project's.
    pub addresses: Option<Vec<IpNet>>,
}

/// A set of rules, as a firewall gets it.
#[derive(Debug, Clone)]
pub struct RuleSetIntent {
    /// The set on record.
    pub row: Arc<FirewallRuleSet>,
    /// Prefixes of the network that the set is attached to. `None` means that it is attached to the
    /// firewall.
    pub network: Option<Vec<IpNet>>,
    /// Addresses of source NAT that the project does not have any more. They are left out.
    pub lost_addresses: Vec<String>,
}

impl PartialEq for RuleSetIntent {
    fn eq(&self, other: &Self) -> bool {
        // A row is replaced by each write: equal revisions of a set have equal contents, unless the
        // set was deleted and made again.
        (Arc::ptr_eq(&self.row, &other.row) || self.row == other.row)
            && self.network == other.network
            && self.lost_addresses == other.lost_addresses
    }
}

/// The desired state of a firewall. `None` means that the machine is allocated as none.
pub fn firewall_desired(tables: &Tables, machine: MachineId) -> Option<FirewallIntent> {
    let allocation = firewall_allocation(tables, machine)?;
    let sets = rule_sets_of_firewall(tables, machine);
    Some(intent(tables, machine, allocation, sets))
}

/// The desired state of a firewall as it would be with another content of one set. `None` means that
/// the machine is allocated as no firewall that the set is for.
pub fn firewall_candidate(
    tables: &Tables,
    machine: MachineId,
    set: &RuleSetKey,
    content: &RuleContent,
) -> Option<FirewallIntent> {
    let allocation = firewall_allocation(tables, machine)?;
    let keys = rule_set_keys(allocation, machine);
    let at = keys.iter().position(|key| key == set)?;
    let mut content = content.clone();
    content.name_unnamed();
    let candidate = Arc::new(FirewallRuleSet {
        set: set.clone(),
        project: allocation.project,
        current: RuleRevision {
            number: 0,
            author: String::new(),
            at: Timestamp::default(),
            comment: String::new(),
            rolled_back_to: None,
            bytes: 0,
            content,
        },
        history_bytes: 0,
        left_over: false,
    });
    let mut sets = rule_sets_of_firewall(tables, machine);
    sets.retain(|row| row.set != *set);
    // Both lists have the order of the keys.
    let place = sets.iter().take_while(|row| keys[..at].contains(&row.set));
    sets.insert(place.count(), &candidate);
    Some(intent(tables, machine, allocation, sets))
}

fn intent(
    tables: &Tables,
    machine: MachineId,
    allocation: &Allocation,
    sets: Vec<&Arc<FirewallRuleSet>>,
) -> FirewallIntent {
    let networks = allocation.networks.iter();
    FirewallIntent {
        machine,
        project: allocation.project,
        allocation: allocation.id,
        hostname: allocation.hostname.clone(),
        asn: allocation.asn,
        distance: firewall_distance(tables, machine),
        networks: networks
            .map(|network| network_intent(tables, allocation.project, network))
            .collect(),
        name_servers: name_servers(tables, machine).unwrap_or_default(),
        release: firewall_release(tables, machine),
        sets: sets
            .into_iter()
            .map(|row| set_intent(tables, allocation, row))
            .collect(),
    }
}

fn network_intent(
    tables: &Tables,
    project: ProjectId,
    joined: &AllocationNetwork,
) -> FirewallNetworkIntent {
    let network = tables.get::<Network>(&joined.network);
    let prefixes = network.map_or(&joined.prefixes, |network| &network.prefixes);
    let parent = network
        .filter(|network| network.project == Some(project))
        .and_then(|network| tables.get::<Network>(network.parent.as_ref()?));
    let announced = parent
        .iter()
        .flat_map(|parent| &parent.additional_announcable_cidrs);
    let nat = network.map_or(joined.nat, |network| network.nat);
    FirewallNetworkIntent {
        network: joined.network.clone(),
        kind: joined.kind,
        vrf: joined.vrf,
        prefixes: prefixes.iter().chain(announced).copied().collect(),
        masquerades: nat == NatType::Ipv4Masquerade,
        addresses: is_shared(network, joined, project)
            .then(|| addresses(tables, project, &joined.network)),
    }
}

/// `true` for an external network in which other projects may have addresses.
fn is_shared(
    network: Option<&Arc<Network>>,
    joined: &AllocationNetwork,
    project: ProjectId,
) -> bool {
    let owner = network.and_then(|network| network.project);
    joined.kind == NetworkType::External && owner != Some(project)
}

/// The addresses of a project in a network: at most 4,096 of those in networks of others.
fn addresses(tables: &Tables, project: ProjectId, network: &NetworkId) -> Vec<IpNet> {
    let own = project_ips(tables, project).filter(|ip| ip.network == *network);
    let own: Vec<IpNet> = own.map(|ip| IpNet::from(ip.ip)).collect();
    prefixes::merged(&own)
}

fn set_intent(
    tables: &Tables,
    allocation: &Allocation,
    row: &Arc<FirewallRuleSet>,
) -> RuleSetIntent {
    let network = match &row.set.target {
        RuleTarget::Firewall(_) => None,
        RuleTarget::Network(id) => tables.get::<Network>(id),
    };
    let egress = row.current.content.egress_addresses.iter();
    let named = egress.flat_map(|egress| egress.ips.iter().map(move |ip| (egress, ip)));
    let is_lost = row.set.owner == RuleOwner::Tenant;
    let lost = named.filter(|(egress, ip)| {
        is_lost && !has_address(tables, allocation.project, &egress.network_id, ip)
    });
    RuleSetIntent {
        row: Arc::clone(row),
        network: network.map(|network| network.prefixes.clone()),
        lost_addresses: lost.map(|(_, ip)| ip.clone()).collect(),
    }
}

impl RuleSetIntent {
    /// Key of the set.
    pub fn set(&self) -> &RuleSetKey {
        &self.row.set
    }

    /// The content as the firewall gets it.
    pub fn content(&self) -> RuleContent {
        let mut content = self.row.current.content.clone();
        for egress in &mut content.egress_addresses {
            egress.ips.retain(|ip| !self.lost_addresses.contains(ip));
        }
        content
            .egress_addresses
            .retain(|egress| !egress.ips.is_empty());
        match (&self.row.set.target, &self.network) {
            (RuleTarget::Network(id), Some(prefixes)) => content.of_network(id.as_str(), prefixes),
            _ => content,
        }
    }
}
