use std::fmt;

use serde::Serialize;

/// The controller that an object belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Controller {
    /// Rules of the operator, networks, rate limits and source NAT.
    Firewall,
    /// Policies of the tenant.
    Cwnp,
    /// Services of type `LoadBalancer`.
    Service,
}

impl Controller {
    /// Name in the configuration file and in the names of counters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Firewall => "firewall",
            Self::Cwnp => "cwnp",
            Self::Service => "service",
        }
    }
}

/// Identity of a rule: its object, and its number in the object. The counter of the rule has the
/// same name, so that it survives changes of the rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RuleId {
    /// Controller of the object.
    pub controller: Controller,
    /// Name of the object, with its direction or namespace: `egress/dns`, `default/web`.
    pub object: String,
    /// Number of the rule in its object, from 0.
    pub rule: usize,
}

impl RuleId {
    /// Name of the rule's counter in the kernel.
    #[must_use]
    pub fn counter(&self) -> String {
        format!("{}/{}/{}", self.controller.name(), self.object, self.rule)
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let controller = self.controller.name();
        write!(out, "{controller} {} rule {}", self.object, self.rule)
    }
}
