use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::{Action, Direction, NamePattern, ProtocolMatch};

/// The list that a rule is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleList {
    /// `firewall.rules`.
    Operator,
    /// `cwnp.egress`.
    Egress,
    /// `cwnp.ingress`.
    Ingress,
    /// `service`.
    Service,
}

impl RuleList {
    /// Controller, list and name of an object, as output names it: `cwnp egress/web`,
    /// `service default/shop`.
    #[must_use]
    pub fn object(self, name: &str) -> String {
        match self {
            Self::Operator => format!("firewall rules/{name}"),
            Self::Egress => format!("cwnp egress/{name}"),
            Self::Ingress => format!("cwnp ingress/{name}"),
            Self::Service => format!("service {name}"),
        }
    }

    /// Name of the counter that a firewall has for the rule of an object: `cwnp/egress/web/0`.
    #[must_use]
    pub fn counter(self, name: &str) -> String {
        format!("{}/0", self.object(name).replacen(' ', "/", 1))
    }
}

/// A rule that passed the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRule {
    /// List of the rule.
    pub list: RuleList,
    /// Name, with the namespace of a service: `web`, `default/shop`.
    pub name: String,
    /// Effect. Policies and services accept.
    pub action: Action,
    /// Flows that it is for.
    pub direction: Direction,
    /// Source prefixes, disjoint.
    pub sources: Vec<IpNet>,
    /// Destination prefixes, disjoint. `None` means names of the DNS, which only the firewall
    /// resolves.
    pub destinations: Option<Vec<IpNet>>,
    /// The names, each once, in small letters and without a dot at the end.
    pub names: BTreeSet<NamePattern>,
    /// Protocols and ports.
    pub protocols: Vec<ProtocolMatch>,
}

impl CheckedRule {
    /// Controller, list and name, as output names the rule: `cwnp egress/web`.
    #[must_use]
    pub fn object(&self) -> String {
        self.list.object(&self.name)
    }
}
