use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Action, CheckedRule, Direction, ProtocolMatch, prefixes};

/// The first packet of a flow through a firewall.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Source.
    pub from: IpAddr,
    /// Destination.
    pub to: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Destination port, or type of ICMP.
    pub port: u16,
    /// `true` if it leaves towards a private network.
    pub is_ingress: bool,
    /// `true` if it comes from a private network.
    pub is_egress: bool,
}

/// The rules of one set, in their order.
#[derive(Clone, Debug)]
pub struct PlacedRules {
    /// Rules that passed the check.
    pub rules: Vec<CheckedRule>,
    /// Outside of these prefixes no policy and no service may name a destination of egress.
    pub allowed_egress: Vec<IpNet>,
    /// As `allowed_egress`, for sources of ingress policies and addresses of services.
    pub allowed_ingress: Vec<IpNet>,
}

/// The rule that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `true` if the packet passes.
    pub is_accepted: bool,
    /// Set and place of the rule, as in the argument. `None` means that no rule decides: the packet
    /// is dropped.
    pub rule: Option<(usize, usize)>,
}

/// The rule that decides about a new flow. Operators' rules decide in the order of sets and rules;
/// then a policy or service accepts it, or it is dropped. Policies with names of the DNS decide
/// about nothing here: only the firewall knows their addresses.
#[must_use]
pub fn explain(sets: &[PlacedRules], flow: &Flow) -> Decision {
    let all = sets.iter().enumerate().flat_map(|(at, set)| {
        let rules = set.rules.iter().enumerate();
        rules.map(move |(index, rule)| ((at, index), set, rule))
    });
    let operators = all.clone().filter(|(_, _, rule)| rule.is_operators());
    // Rules that match are few: what the operator allows is asked of them alone.
    let tenants =
        all.filter(|(_, set, rule)| !rule.is_operators() && rule.matches(flow) && set.allows(rule));
    let deciding = operators
        .filter(|(_, _, rule)| rule.action != Action::Log)
        .chain(tenants)
        .find(|(_, _, rule)| rule.matches(flow));
    Decision {
        is_accepted: deciding.is_some_and(|(_, _, rule)| rule.action == Action::Accept),
        rule: deciding.map(|(place, _, _)| place),
    }
}

impl PlacedRules {
    /// `true` if the operator allows what a policy or a service names.
    #[must_use]
    pub fn allows(&self, rule: &CheckedRule) -> bool {
        use crate::RuleList::{Egress, Ingress, Operator, Service};
        let within = |named: &[IpNet], allowed: &[IpNet]| {
            allowed.is_empty() || prefixes::outside(named, allowed).is_none()
        };
        let destinations = rule.destinations.as_deref().unwrap_or_default();
        match rule.list {
            Operator => true,
            Egress => within(destinations, &self.allowed_egress),
            Ingress => within(&rule.sources, &self.allowed_ingress),
            Service => within(destinations, &self.allowed_ingress),
        }
    }
}

impl CheckedRule {
    fn is_operators(&self) -> bool {
        self.list == crate::RuleList::Operator
    }

    /// `true` if the rule is for the flow.
    #[must_use]
    pub fn matches(&self, flow: &Flow) -> bool {
        let has_direction = match self.direction {
            Direction::Any => true,
            Direction::Ingress => flow.is_ingress,
            Direction::Egress => flow.is_egress,
        };
        let within = |nets: &[IpNet], address| nets.iter().any(|net| net.contains(address));
        let has_protocol = |own: &ProtocolMatch| matches_protocol(*own, flow);
        has_direction
            && within(&self.sources, &flow.from)
            && within(self.destinations.as_deref().unwrap_or_default(), &flow.to)
            && self.protocols.iter().any(has_protocol)
    }
}

/// `true` if the flow has the protocol and the port, or the type of ICMP.
fn matches_protocol(own: ProtocolMatch, flow: &Flow) -> bool {
    own.fits(flow.from.is_ipv4())
        && match own {
            ProtocolMatch::Any => true,
            ProtocolMatch::Protocol(protocol) => protocol == flow.protocol,
            ProtocolMatch::Ports {
                protocol,
                first,
                last,
            } => protocol == flow.protocol && (first..=last).contains(&flow.port),
            ProtocolMatch::IcmpType { protocol, kind } => {
                protocol == flow.protocol && u16::from(kind) == flow.port
            }
        }
}
