use serde::{Deserialize, Serialize};

/// Addresses outside of which no policy and no service may name one. Empty allows every address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedNetworks {
    /// Destinations of egress policies.
    #[serde(default, rename = "egress", skip_serializing_if = "Vec::is_empty")]
    pub egress_prefixes: Vec<String>,
    /// Sources of ingress policies, and addresses of services.
    #[serde(default, rename = "ingress", skip_serializing_if = "Vec::is_empty")]
    pub ingress_prefixes: Vec<String>,
}

impl AllowedNetworks {
    /// `true` if it allows every address.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.egress_prefixes.is_empty() && self.ingress_prefixes.is_empty()
    }
}
