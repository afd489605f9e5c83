//! Which rule of which set decides about a flow.

use std::net::IpAddr;

use control_convert::firewall::{RuleDetail, rules};
use control_convert::parse;
use control_gate::Caller;
use control_gate::refusal::invalid;
use control_state::life::{FirewallIntent, FirewallNetworkIntent, RuleSetIntent, firewall_desired};
use control_state::query::firewall_allocation;
use control_state::{NetworkType, StateError, Tables};
use proto_firewall::protocol_number::TCP;
use proto_firewall::{Flow, PlacedRules, RuleBudget, RuleScope, checked_after, explain};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_types::{IpNet, MachineId, ProjectId};
use tonic::Status;

use crate::services::Services;

/// A flow through a firewall.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowQuestion {
    firewall: MachineId,
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    port: u16,
}

impl FlowQuestion {
    /// The question of a request.
    pub(super) fn of(
        firewall: &str,
        from: &str,
        to: &str,
        protocol: u32,
        port: u32,
    ) -> Result<Self, Status> {
        let from: IpAddr = parse("from", from)?;
        let to: IpAddr = parse("to", to)?;
        if from.is_ipv4() != to.is_ipv4() {
            let rule = "and from have different address families; use IPv4 for both, or IPv6";
            return Err(invalid("to", rule));
        }
        let number = u8::try_from(protocol).map_err(|_| invalid("protocol", "must be 0 to 255"))?;
        Ok(Self {
            firewall: parse("firewall", firewall)?,
            from,
            to,
            protocol: if number == 0 { TCP } else { number },
            port: u16::try_from(port).map_err(|_| invalid("port", "must be 0 to 65535"))?,
        })
    }

    /// The flow. `is_egress` if it comes from a private network, `is_ingress` if it goes to one.
    fn flow(&self, is_egress: bool, is_ingress: bool) -> Flow {
        Flow {
            from: self.from,
            to: self.to,
            protocol: self.protocol,
            port: self.port,
            is_ingress,
            is_egress,
        }
    }
}

impl Services {
    /// The rule that decides about a flow. `None` as the project means an administrator.
    pub(super) async fn explain_flow(
        &self,
        caller: &Caller,
        question: &FlowQuestion,
        project: Option<ProjectId>,
    ) -> Result<mesh::FirewallExplanation, Status> {
        let found = self
            .gate
            .read(caller, |tables| explanation(tables, question, project));
        found.await
    }
}

fn explanation(
    tables: &Tables,
    question: &FlowQuestion,
    project: Option<ProjectId>,
) -> Result<mesh::FirewallExplanation, StateError> {
    let intent = firewall_desired(tables, question.firewall);
    let intent = intent.filter(|intent| project.is_none_or(|project| project == intent.project));
    let intent = intent.ok_or_else(|| StateError::not_found("firewall", question.firewall))?;
    let (input, output) = (
        network_of(&intent, question.from),
        network_of(&intent, question.to),
    );
    if let Some(reason) = reason_of_input(tables, &intent, question.to) {
        return Ok(mesh::FirewallExplanation {
            reason,
            input: id_of(input),
            decided_by_input: true,
            ..mesh::FirewallExplanation::default()
        });
    }
    let flow = question.flow(is_private(input), is_private(output));
    let sets = placed(&intent);
    let decision = explain(&sets, &flow);
    let mut shown = mesh::FirewallExplanation {
        accepted: decision.is_accepted,
        reason: "no rule accepts it".to_owned(),
        input: id_of(input),
        output: id_of(output),
        ..mesh::FirewallExplanation::default()
    };
    if let Some((set, rule)) = decision.rule {
        let row = &intent.sets[set].row;
        let object = sets[set].rules[rule].object();
        let verb = if decision.is_accepted {
            "accepts"
        } else {
            "drops"
        };
        let (owner, target, number) = (row.set.owner, &row.set.target, row.current.number);
        shown.reason = format!("{object} of the {owner}, {target} revision {number}, {verb} it");
        shown.object = object;
        shown.rules = Some(rules(row, RuleDetail::Summary));
    }
    show_names(&mut shown, &intent, undecided(&sets, &flow));
    Ok(shown)
}

/// Adds the policies with names that only the firewall can decide about. It refuses them as long as
/// it has no name server.
fn show_names(
    shown: &mut mesh::FirewallExplanation,
    intent: &FirewallIntent,
    undecided: Vec<String>,
) {
    if !intent.name_servers.is_empty() {
        shown.undecided = undecided;
    } else if !undecided.is_empty() {
        shown.reason.push_str(
            "; its policies with names are not in force, because it has no name server: set \
             dns_servers of its partition",
        );
    }
}

fn is_private(network: Option<&FirewallNetworkIntent>) -> bool {
    network.is_some_and(|network| network.kind.is_child())
}

/// Why no rule decides about a destination: nothing is forwarded to it. `None` means that rules do.
fn reason_of_input(tables: &Tables, intent: &FirewallIntent, to: IpAddr) -> Option<String> {
    let allocation = firewall_allocation(tables, intent.machine)?;
    let decides = "access to the firewall (input) decides, not these rules";
    let mut addresses = allocation.networks.iter().flat_map(|network| &network.ips);
    if addresses.any(|address| *address == to) {
        return Some(format!(
            "{to} is an address of the firewall itself: {decides}"
        ));
    }
    let mut underlays = intent.networks.iter().filter(|network| {
        let is_underlay = network.kind == NetworkType::Underlay;
        is_underlay && network.prefixes.iter().any(|prefix| prefix.contains(&to))
    });
    let underlay = underlays.next()?;
    let underlay = &underlay.network;
    Some(format!("{to} is in the underlay {underlay}: {decides}"))
}

fn id_of(network: Option<&FirewallNetworkIntent>) -> String {
    let id = network.map(|network| network.network.to_string());
    id.unwrap_or_default()
}

/// The rules of each set that are right, in the order of the sets.
fn placed(intent: &FirewallIntent) -> Vec<PlacedRules> {
    let all = |name: fn(&RuleSetIntent) -> &Vec<String>| -> Vec<IpNet> {
        let sets = intent.sets.iter().flat_map(name);
        sets.filter_map(|text| text.parse().ok()).collect()
    };
    let egress = all(|set| &set.row.current.content.allowed_networks.egress_prefixes);
    let ingress = all(|set| &set.row.current.content.allowed_networks.ingress_prefixes);
    // All sets of a firewall share its bounds.
    let mut budget = RuleBudget::default();
    let of_set = |set: &RuleSetIntent| {
        let scope = RuleScope {
            owner: set.set().owner,
            network: set.network.as_deref(),
        };
        PlacedRules {
            rules: checked_after(&set.row.current.content, scope, &mut budget).0,
            allowed_egress: egress.clone(),
            allowed_ingress: ingress.clone(),
        }
    };
    intent.sets.iter().map(of_set).collect()
}

/// Policies with names that would match if the destination had one of them.
fn undecided(sets: &[PlacedRules], flow: &Flow) -> Vec<String> {
    let rules = sets.iter().flat_map(|set| &set.rules);
    let named = rules.filter(|rule| rule.destinations.is_none());
    let anywhere = named.filter(|rule| {
        let mut rule = (*rule).clone();
        rule.destinations = Some(vec![IpNet::from(flow.to)]);
        rule.matches(flow)
    });
    anywhere.map(|rule| rule.object()).collect()
}

/// The network with the longest prefix for an address; without one, the first external network.
fn network_of(intent: &FirewallIntent, address: IpAddr) -> Option<&FirewallNetworkIntent> {
    let networks = || {
        let all = intent.networks.iter();
        all.filter(|network| network.kind != NetworkType::Underlay)
    };
    let prefixes = networks().flat_map(|network| {
        let prefixes = network.prefixes.iter();
        prefixes.map(move |prefix| (prefix, network))
    });
    let longest = prefixes
        .filter(|(prefix, _)| prefix.contains(&address))
        .max_by_key(|(prefix, _)| prefix.prefix_len())
        .map(|(_, network)| network);
    longest.or_else(|| networks().find(|network| network.kind == NetworkType::External))
}
