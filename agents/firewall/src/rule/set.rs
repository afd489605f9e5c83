use std::collections::BTreeSet;

use ipnet::IpNet;

use super::{
    Action, Direction, InputPolicy, NameResolver, NameSelector, Network, ProtocolMatch, RuleId,
};

/// A rule for new flows that are forwarded. Established flows, and packets related to them, pass
/// before any rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Identity.
    pub id: RuleId,
    /// Flows that the rule is for.
    pub direction: Direction,
    /// Source prefixes, disjoint.
    pub sources: Vec<IpNet>,
    /// Destination prefixes, disjoint.
    pub destinations: Vec<IpNet>,
    /// Names whose addresses are the destinations, if there are any: a packet matches if its
    /// destination is also an address that one of them was resolved to.
    pub names: Vec<NameSelector>,
    /// Protocols and ports; a packet matches one of them.
    pub protocols: Vec<ProtocolMatch>,
    /// Effect.
    pub action: Action,
    /// `true` if packets that match are logged, at most ten a second for all rules of a layer.
    pub log: bool,
}

/// The most that may come in from a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Id of the network.
    pub network: String,
    /// Limit of all packets from its interfaces together, MiB per second.
    pub mebibytes_per_second: u32,
}

/// Everything that the compiler reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// Networks, by their order in the source.
    pub networks: Vec<Network>,
    /// Rules of the operator, in their order: the first that matches decides.
    pub operator: Vec<Rule>,
    /// Rules of tenants, which only accept. They decide about packets that no operator rule decides
    /// about.
    pub tenant: Vec<Rule>,
    /// Rate limits.
    pub rate_limits: Vec<RateLimit>,
    /// Access to the firewall itself.
    pub input: InputPolicy,
    /// DNS proxy. `None` if the operator does not ask for it: then no rule has names.
    pub resolver: Option<NameResolver>,
    /// Addresses that a tenant may reach. Empty means every address.
    pub allowed_egress: Vec<IpNet>,
    /// Addresses whose traffic is counted as internal. Empty means that it is not counted apart.
    pub internal_prefixes: Vec<IpNet>,
}

impl RuleSet {
    /// The names of all rules, each once.
    #[must_use]
    pub fn selectors(&self) -> BTreeSet<&NameSelector> {
        self.rules().flat_map(|rule| &rule.names).collect()
    }

    /// The DNS proxy, if a rule needs it.
    #[must_use]
    pub fn needed_resolver(&self) -> Option<&NameResolver> {
        let has_names = self.rules().any(|rule| !rule.names.is_empty());
        self.resolver.as_ref().filter(|_| has_names)
    }

    /// Operator rules, then tenant rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.operator.iter().chain(&self.tenant)
    }
}
