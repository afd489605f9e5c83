use std::fmt;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::{AddressBlock, RuleContent, RuleSpec};

/// Length of the mark of a network that [`RuleContent::of_network`] appends to names, bytes.
pub(crate) const MARK_LEN: usize = 9;

/// The owner of a set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleOwner {
    /// The operator of the site, whose rules come first.
    Operator,
    /// The project that the firewall belongs to.
    Tenant,
}

impl RuleOwner {
    /// Name in output and in keys.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Tenant => "tenant",
        }
    }
}

impl fmt::Display for RuleOwner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The firewall or network that a set of rules is for.
#[derive(Clone, Copy, Debug)]
pub struct RuleScope<'a> {
    /// Its owner.
    pub owner: RuleOwner,
    /// Prefixes of the private network that the set is attached to. `None` means that it is attached
    /// to a firewall.
    pub network: Option<&'a [IpNet]>,
}

impl RuleContent {
    /// The content of a network's set as a firewall gets it: rules for every address are for the
    /// network's own, and each name has a mark of the network, so that rules of one name in two sets
    /// have counters of their own.
    #[must_use]
    pub fn of_network(mut self, id: &str, prefixes: &[IpNet]) -> Self {
        let blocks: Vec<AddressBlock> = prefixes
            .iter()
            .map(|prefix| AddressBlock {
                cidr: prefix.to_string(),
                except: Vec::new(),
            })
            .collect();
        let mark = format!(".{:08x}", fnv1a(id.as_bytes()));
        self.name_unnamed();
        let narrow = |rules: &mut Vec<RuleSpec>, is_ingress: fn(&RuleSpec) -> bool| {
            for rule in rules {
                rule.name.push_str(&mark);
                let is_ingress = is_ingress(rule);
                let inner = if is_ingress {
                    &mut rule.to
                } else {
                    &mut rule.from
                };
                if inner.is_empty() {
                    inner.clone_from(&blocks);
                }
            }
        };
        narrow(&mut self.operator_rules, |rule| {
            rule.direction.as_deref() == Some("ingress")
        });
        narrow(&mut self.egress_policies, |_| false);
        narrow(&mut self.ingress_policies, |_| true);
        for service in &mut self.load_balancers {
            service.name.push_str(&mark);
        }
        self
    }
}

/// FNV-1a, 32 bits: a short mark that is the same on every node.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
