use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::source_networks::SourceNetworks;
use crate::rule::prefixes::{merged, subtract};
use crate::rule::{NetworkKind, RuleSet};

/// Counter of forwarded packets whose source does not belong to the network that they come from, and
/// name of the chain that drops them.
pub const SPOOFED: &str = "spoofed";
/// Counter of such packets for the firewall itself.
pub(super) const INPUT_SPOOFED: &str = "input/spoofed";

/// One step of the check of sources. The first that matches decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceRule {
    /// Interfaces that the packet comes in by. `None` means every interface.
    pub(crate) inputs: Option<Vec<String>>,
    /// Interfaces that the packet leaves by. `None` means every interface.
    pub(crate) outputs: Option<Vec<String>>,
    /// Prefixes of the source, disjoint. `None` means every source.
    pub(crate) sources: Option<Vec<IpNet>>,
    /// `true` if these are prefixes of the destination instead.
    pub(crate) is_by_destination: bool,
    /// `true` if the packet is dropped, `false` if rules decide about it.
    pub(crate) is_spoofed: bool,
}

/// The steps for the packets of a hook. A packet that none matches is for the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceCheck {
    /// Name of the chain of the steps.
    pub(crate) name: &'static str,
    /// Name of the chain that drops.
    pub(crate) spoofed: &'static str,
    pub(crate) counter: &'static str,
    pub(crate) rules: Vec<SourceRule>,
}

impl SourceCheck {
    /// The check of forwarded packets.
    pub(crate) fn forward(rules: &RuleSet) -> Self {
        let networks = SourceNetworks::new(rules);
        let mut steps = Steps::default();
        let closed = networks.interfaces(NetworkKind::Closed);
        steps.spoofed(Some(closed.clone()), None);
        steps.spoofed_out(closed);
        steps.spoofed(None, Some(martians()));
        for network in networks.known() {
            let own = networks.own_prefixes(network);
            steps.valid(network.interfaces.clone(), None, Some(own));
        }
        steps.spoofed(None, Some(networks.taken.clone()));
        steps.valid(networks.interfaces_without_prefixes(), None, None);
        let outside = networks.interfaces(NetworkKind::External);
        let private = networks.interfaces(NetworkKind::Private);
        let external = Some(networks.external.clone());
        steps.valid(private.clone(), Some(outside), external);
        steps.spoofed(Some(private), None);
        Self {
            name: "sources",
            spoofed: SPOOFED,
            counter: SPOOFED,
            rules: steps.rules,
        }
    }

    /// The check of fragments from private and external networks, before it is known where they go.
    pub(crate) fn fragments(rules: &RuleSet) -> Self {
        let networks = SourceNetworks::new(rules);
        let mut steps = Steps::default();
        let private = networks.interfaces(NetworkKind::Private);
        steps.spoofed(Some(networks.interfaces(NetworkKind::Closed)), None);
        // Also an interface that manages the firewall: it is not known yet where a fragment goes.
        let mut checked = networks.interfaces(NetworkKind::External);
        checked.extend(private.clone());
        let nobody = martians()
            .into_iter()
            .flat_map(|own| subtract(&own, &neighbours()));
        steps.spoofed(Some(checked.clone()), Some(nobody.collect()));
        for network in networks.known() {
            let mut own = networks.own_prefixes(network);
            own.extend(neighbours());
            steps.valid(network.interfaces.clone(), None, Some(merged(&own)));
        }
        steps.spoofed(Some(checked), Some(networks.taken.clone()));
        steps.valid(networks.interfaces_without_prefixes(), None, None);
        // The address of somebody outside stands for him where it leads inside, and what leads there may
        // have the address of a machine, or that of the firewall, in an external network.
        let inside = networks.taken.iter().chain(&networks.external);
        let inside: Vec<IpNet> = inside.copied().collect();
        steps.spoofed_to(private.clone(), merged(&inside));
        steps.valid(private.clone(), None, Some(networks.external.clone()));
        steps.spoofed(Some(private), None);
        Self {
            name: "fragment-sources",
            spoofed: SPOOFED,
            counter: SPOOFED,
            rules: steps.rules,
        }
    }

    /// The check of packets for the firewall itself, from private and external networks.
    pub(crate) fn input(rules: &RuleSet) -> Self {
        let networks = SourceNetworks::new(rules);
        let mut steps = Steps::default();
        steps.spoofed(Some(networks.interfaces(NetworkKind::Closed)), None);
        for network in networks.known() {
            let mut own = networks.own_prefixes(network);
            own.extend(neighbours());
            steps.valid(network.interfaces.clone(), None, Some(merged(&own)));
        }
        let private = networks.interfaces(NetworkKind::Private);
        let checked = checked_input(rules, &networks);
        steps.spoofed(Some(checked), Some(networks.taken.clone()));
        steps.valid(networks.interfaces_without_prefixes(), None, None);
        steps.valid(private.clone(), None, Some(networks.external.clone()));
        steps.spoofed(Some(private), None);
        Self {
            name: "input-sources",
            spoofed: "input-spoofed",
            counter: INPUT_SPOOFED,
            rules: steps.rules,
        }
    }
}

/// The interfaces whose packets for the firewall itself are checked: an interface that manages it may be
/// one of an external network, too.
fn checked_input(rules: &RuleSet, networks: &SourceNetworks<'_>) -> Vec<String> {
    let management = &rules.input.management_interfaces;
    let mut checked = networks.interfaces(NetworkKind::External);
    checked.retain(|name| !management.contains(name));
    checked.extend(networks.interfaces(NetworkKind::Private));
    checked
}

/// Steps while they are collected. One that no packet matches is left out.
#[derive(Default)]
struct Steps {
    rules: Vec<SourceRule>,
}

impl Steps {
    fn valid(
        &mut self,
        inputs: Vec<String>,
        outputs: Option<Vec<String>>,
        sources: Option<Vec<IpNet>>,
    ) {
        self.push(SourceRule {
            inputs: Some(inputs),
            outputs,
            sources,
            is_by_destination: false,
            is_spoofed: false,
        });
    }

    fn spoofed(&mut self, inputs: Option<Vec<String>>, sources: Option<Vec<IpNet>>) {
        self.push(SourceRule {
            inputs,
            outputs: None,
            sources,
            is_by_destination: false,
            is_spoofed: true,
        });
    }

    fn spoofed_out(&mut self, outputs: Vec<String>) {
        self.push(SourceRule {
            inputs: None,
            outputs: Some(outputs),
            sources: None,
            is_by_destination: false,
            is_spoofed: true,
        });
    }

    fn spoofed_to(&mut self, inputs: Vec<String>, destinations: Vec<IpNet>) {
        self.push(SourceRule {
            inputs: Some(inputs),
            outputs: None,
            sources: Some(destinations),
            is_by_destination: true,
            is_spoofed: true,
        });
    }

    fn push(&mut self, rule: SourceRule) {
        let is_empty = |names: &Option<Vec<String>>| names.as_ref().is_some_and(Vec::is_empty);
        let has_no_source = rule.sources.as_ref().is_some_and(Vec::is_empty);
        if !is_empty(&rule.inputs) && !is_empty(&rule.outputs) && !has_no_source {
            self.rules.push(rule);
        }
    }
}

/// Sources that no host has (RFC 6890), and those that no router forwards.
fn martians() -> Vec<IpNet> {
    let v4 = |a, b, len| prefix(Ipv4Addr::new(a, b, 0, 0).into(), len);
    let v6 = |first, len| prefix(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0).into(), len);
    let all = [
        v4(0, 0, 8),
        v4(127, 0, 8),
        v4(169, 254, 16),
        v4(224, 0, 3),
        // `::`, `::1`.
        v6(0, 127),
        prefix(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().into(), 96),
        v6(0xFE80, 10),
        v6(0xFF00, 8),
    ];
    all.into_iter().flatten().collect()
}

/// Sources of neighbour discovery besides a network's own: link-local, and `::` while an address is
/// tried.
fn neighbours() -> Vec<IpNet> {
    let link_local = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 0);
    let all = [
        prefix(link_local.into(), 10),
        prefix(Ipv6Addr::UNSPECIFIED.into(), 128),
    ];
    all.into_iter().flatten().collect()
}

fn prefix(address: IpAddr, len: u8) -> Option<IpNet> {
    IpNet::new(address, len).ok()
}
