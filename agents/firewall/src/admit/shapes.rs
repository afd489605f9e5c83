//! The objects of the static source as they are written, with the names of the published CRDs.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_norway::Value;

use super::fqdns::FqdnSpec;
use super::problem::Fault;

/// Addresses, and those among them that are excepted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IpBlock {
    pub(super) cidr: String,
    #[serde(default)]
    pub(super) except: Vec<String>,
}

/// A protocol with its ports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PortSpec {
    #[serde(default)]
    pub(super) protocol: Option<String>,
    #[serde(default)]
    pub(super) port: Option<u32>,
    #[serde(default)]
    pub(super) end_port: Option<u32>,
    #[serde(default)]
    pub(super) icmp_type: Option<u8>,
}

/// A rule, of the tenant or of the operator. Which fields it may have depends on whose it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleSpec {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default)]
    pub(super) action: Option<crate::rule::Action>,
    #[serde(default)]
    pub(super) direction: Option<crate::rule::Direction>,
    #[serde(default)]
    pub(super) from: Vec<IpBlock>,
    #[serde(default)]
    pub(super) to: Vec<IpBlock>,
    #[serde(default, rename = "toFQDNs")]
    pub(super) to_fqdns: Vec<FqdnSpec>,
    #[serde(default)]
    pub(super) ports: Vec<PortSpec>,
    #[serde(default)]
    pub(super) log: bool,
}

/// Reads an object.
pub(super) fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Fault> {
    T::deserialize(value).map_err(|error| {
        let text = error.to_string();
        let (field, problem) = match text.split_once(": ") {
            Some((path, rest)) if !path.contains(' ') => (path, rest),
            _ => ("the object", text.as_str()),
        };
        Fault::new(
            field,
            problem,
            "write it as docs/reference/firewall.md shows it",
        )
    })
}
