use serde::{Deserialize, Serialize};

use crate::{AddressBlock, NamePattern, PortSpec};

/// A rule of an operator, or a policy of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSpec {
    /// Name, unique in its list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Free text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// `accept`, `drop` or `log`. Rules of operators must have one, policies only accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// `ingress`, `egress` or `any`, of rules of operators. Policies have that of their list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// Sources. Empty means every address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<AddressBlock>,
    /// Destinations. Empty means every address, or the names in `to_fqdns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<AddressBlock>,
    /// Destinations by name, of egress policies.
    #[serde(default, rename = "toFQDNs", skip_serializing_if = "Vec::is_empty")]
    pub to_fqdns: Vec<NamePattern>,
    /// Protocols and ports. Empty means every protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortSpec>,
    /// `true` if packets that match are logged.
    #[serde(default, skip_serializing_if = "is_false")]
    pub log: bool,
}

impl RuleSpec {
    /// The name of a rule without one, at this place of its list.
    pub(crate) fn name_of_place(index: usize) -> String {
        format!("rule-{index}")
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde wants"
)]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}
