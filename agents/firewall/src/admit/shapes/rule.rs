use proto_firewall::{AddressBlock, NamePattern, RuleSpec, Violation};
use serde::Deserialize;
use serde_norway::Value;

use super::service::PortShape;
use super::{all, decode, refuse_empty};

/// Addresses, and those among them that are excepted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AddressShape {
    cidr: String,
    #[serde(default)]
    except: Vec<String>,
}

/// DNS names that a policy is for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NameShape {
    #[serde(default)]
    match_name: Option<String>,
    #[serde(default)]
    match_pattern: Option<String>,
}

/// A rule, of the tenant or of the operator. Which fields it may have depends on whose it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admit) struct RuleShape {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    action: Option<String>,
    #[serde(default)]
    direction: Option<String>,
    #[serde(default)]
    from: Vec<AddressShape>,
    #[serde(default)]
    to: Vec<AddressShape>,
    #[serde(default, rename = "toFQDNs")]
    to_fqdns: Vec<NameShape>,
    #[serde(default)]
    ports: Vec<PortShape>,
    #[serde(default)]
    log: bool,
}

/// Reads a rule of the file, or of control. In a `ClusterwideNetworkPolicy`, whose rules are read as they
/// are, an empty list is as good as none.
pub(in crate::admit) fn decode_rule(value: &Value) -> Result<RuleSpec, Violation> {
    refuse_empty(value, &["from", "to", "toFQDNs", "ports"])?;
    decode::<RuleShape>(value).map(RuleSpec::from)
}

impl From<AddressShape> for AddressBlock {
    fn from(shape: AddressShape) -> Self {
        let AddressShape { cidr, except } = shape;
        Self { cidr, except }
    }
}

impl From<NameShape> for NamePattern {
    fn from(shape: NameShape) -> Self {
        Self {
            match_name: shape.match_name,
            match_pattern: shape.match_pattern,
        }
    }
}

impl From<RuleShape> for RuleSpec {
    fn from(shape: RuleShape) -> Self {
        Self {
            name: shape.name.unwrap_or_default(),
            description: shape.description.unwrap_or_default(),
            action: shape.action,
            direction: shape.direction,
            from: all(shape.from),
            to: all(shape.to),
            to_fqdns: all(shape.to_fqdns),
            ports: all(shape.ports),
            log: shape.log,
        }
    }
}
