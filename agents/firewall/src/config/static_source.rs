use serde::{Deserialize, Serialize};
use serde_norway::Value;

use super::given::{given_list, given_object};

/// Rules in the file itself. Objects are values here: each is checked on its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticSource {
    /// For the controller `firewall`.
    #[serde(default)]
    pub firewall: Option<FirewallSpec>,
    /// For the controller `cwnp`.
    #[serde(default)]
    pub cwnp: Option<PolicyLists>,
    /// For the controller `service`: services.
    #[serde(default, deserialize_with = "given_list")]
    pub service: Vec<Value>,
}

/// The part that the controller `firewall` reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FirewallSpec {
    /// Place of the release that self-update installs: a URL, in the static source also a path.
    #[serde(default, rename = "controllerURL")]
    pub controller_url: Option<String>,
    /// Version that self-update installs. Absent means that it installs none.
    #[serde(default)]
    pub controller_version: Option<String>,
    /// SHA-256 of the signed head of that release, as `sha256:HEX`. Absent means that any release of that
    /// version counts which a trusted key has signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_digest: Option<String>,
    /// Networks that the firewall joins.
    #[serde(default, deserialize_with = "given_list")]
    pub networks: Vec<Value>,
    /// The most that may come in from a network.
    #[serde(default, deserialize_with = "given_list")]
    pub rate_limits: Vec<Value>,
    /// Sources of flows into a network.
    #[serde(default, deserialize_with = "given_list")]
    pub egress_rules: Vec<Value>,
    /// Prefixes whose traffic is counted as internal.
    #[serde(default, deserialize_with = "given_list")]
    pub internal_prefixes: Vec<Value>,
    /// Server or servers that the DNS proxy asks. Absent means that there is no proxy.
    #[serde(default)]
    pub dns_server_address: Option<Value>,
    /// Port of the DNS proxy.
    #[serde(default)]
    pub dns_port: Option<Value>,
    /// Addresses of the DNS proxy. Empty means those of the interfaces of private networks.
    #[serde(default, deserialize_with = "given_list")]
    pub dns_listen_addresses: Vec<Value>,
    /// Limits of what tenants may allow.
    #[serde(
        default,
        deserialize_with = "given_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub allowed_networks: Option<Value>,
    /// Access to the firewall itself for its managers.
    #[serde(default)]
    pub management: Option<Value>,
    /// `true` if the first packet of every accepted flow is logged.
    #[serde(default)]
    pub log_accepted_connections: bool,
    /// Rules of the operator, in their order, above those of tenants.
    #[serde(default, deserialize_with = "given_list")]
    pub rules: Vec<Value>,
}

impl FirewallSpec {
    /// No object at all.
    pub(crate) const fn empty() -> Self {
        Self {
            controller_url: None,
            controller_version: None,
            controller_digest: None,
            networks: Vec::new(),
            rate_limits: Vec::new(),
            egress_rules: Vec::new(),
            internal_prefixes: Vec::new(),
            dns_server_address: None,
            dns_port: None,
            dns_listen_addresses: Vec::new(),
            allowed_networks: None,
            management: None,
            log_accepted_connections: false,
            rules: Vec::new(),
        }
    }
}

/// Policies of the tenant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyLists {
    /// Flows from private networks.
    #[serde(default, deserialize_with = "given_list")]
    pub egress: Vec<Value>,
    /// Flows to private networks.
    #[serde(default, deserialize_with = "given_list")]
    pub ingress: Vec<Value>,
    /// Policies with rules of both, as a `ClusterwideNetworkPolicy` has them. If one rule of a
    /// policy is wrong, none of it is in force.
    #[serde(default, deserialize_with = "given_list")]
    pub policies: Vec<Value>,
}
