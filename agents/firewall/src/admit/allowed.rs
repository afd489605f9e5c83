use ipnet::IpNet;
use proto_firewall::parts::prefix;
use proto_firewall::{Violation, prefixes};
use serde::Deserialize;
use serde_norway::Value;

use super::shapes::decode;

/// Addresses outside that a tenant may name. An empty list allows every address.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AllowedNetworks {
    pub(super) ingress: Vec<IpNet>,
    pub(super) egress: Vec<IpNet>,
}

impl AllowedNetworks {
    pub(super) fn decode(value: &Value) -> Result<Self, Violation> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Lists {
            #[serde(default)]
            ingress: Vec<String>,
            #[serde(default)]
            egress: Vec<String>,
        }
        let lists: Lists = decode(value)?;
        let all = |field, list: &[String]| -> Result<Vec<IpNet>, Violation> {
            list.iter().map(|text| prefix(field, text)).collect()
        };
        Ok(Self {
            ingress: all("ingress", &lists.ingress)?,
            egress: all("egress", &lists.egress)?,
        })
    }

    /// Nothing is allowed. In force while the list is wrong.
    pub(super) fn nothing() -> Self {
        let nowhere = |text: &str| text.parse().ok().into_iter().collect();
        Self {
            ingress: nowhere("255.255.255.255/32"),
            egress: nowhere("255.255.255.255/32"),
        }
    }
}

/// Refuses addresses outside of the allowed ones.
pub(super) fn check(field: &str, named: &[IpNet], allowed: &[IpNet]) -> Result<(), Violation> {
    if allowed.is_empty() {
        return Ok(());
    }
    let Some(net) = prefixes::outside(named, allowed) else {
        return Ok(());
    };
    let problem = format!("{net} is outside of the networks that the operator allows");
    let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    let remedy = format!("name prefixes in {}", list.join(", "));
    Err(Violation::new(field, problem, &remedy))
}
