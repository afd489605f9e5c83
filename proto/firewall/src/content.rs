use serde::{Deserialize, Serialize};

use crate::rule_spec::is_false;
use crate::{AllowedNetworks, EgressAddresses, RateLimit, RuleSpec, ServiceSpec};

/// The content of one set of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleContent {
    /// Rules of the operator in their order: the first that matches decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operator_rules: Vec<RuleSpec>,
    /// Policies for flows from private networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub egress_policies: Vec<RuleSpec>,
    /// Policies for flows to private networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ingress_policies: Vec<RuleSpec>,
    /// Services.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_balancers: Vec<ServiceSpec>,
    /// Rate limits of networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rate_limits: Vec<RateLimit>,
    /// Source NAT.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub egress_addresses: Vec<EgressAddresses>,
    /// Limits of what tenants may allow.
    #[serde(skip_serializing_if = "AllowedNetworks::is_empty")]
    pub allowed_networks: AllowedNetworks,
    /// `true` if the first packet of every flow that a tenant's rule accepts is logged.
    #[serde(skip_serializing_if = "is_false")]
    pub log_accepted: bool,
}

impl RuleContent {
    /// Number of objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.operator_rules.len()
            + self.egress_policies.len()
            + self.ingress_policies.len()
            + self.load_balancers.len()
            + self.rate_limits.len()
            + self.egress_addresses.len()
    }

    /// The content as JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        // Texts, numbers and lists of them always have a JSON form.
        serde_json::to_vec(self).unwrap_or_else(|_| b"{}".to_vec())
    }

    /// Gives rules without a name the name of their place, as the firewall agent does.
    pub fn name_unnamed(&mut self) {
        for list in [
            &mut self.operator_rules,
            &mut self.egress_policies,
            &mut self.ingress_policies,
        ] {
            for (index, rule) in list.iter_mut().enumerate() {
                if rule.name.is_empty() {
                    rule.name = RuleSpec::name_of_place(index);
                }
            }
        }
    }
}
