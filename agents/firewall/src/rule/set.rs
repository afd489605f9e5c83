use ipnet::IpNet;

use super::{Action, Direction, InputPolicy, Network, ProtocolMatch, RuleId};

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
}

impl RuleSet {
    /// Operator rules, then tenant rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.operator.iter().chain(&self.tenant)
    }
}
