//! Keys of sets of rules.

use std::fmt;
use std::str::FromStr;

use proto_firewall::RuleOwner;
use proto_types::{MachineId, NetworkId};
use serde::{Deserialize, Serialize};

/// The object that a set of rules is attached to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleTarget {
    /// A machine that is allocated as a firewall.
    Firewall(MachineId),
    /// A private network of a project: the set is for each of the project's firewalls in it.
    Network(NetworkId),
}

impl fmt::Display for RuleTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Firewall(id) => write!(f, "firewall/{id}"),
            Self::Network(id) => write!(f, "network/{id}"),
        }
    }
}

/// Key of a set of rules: each owner has one set of a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleSetKey {
    /// The object that it is attached to.
    pub target: RuleTarget,
    /// Its owner.
    pub owner: RuleOwner,
}

impl fmt::Display for RuleSetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.target, self.owner)
    }
}

impl FromStr for RuleSetKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "it is not KIND/ID/OWNER";
        let (kind, rest) = text.split_once('/').ok_or(WRONG)?;
        let (id, owner) = rest.rsplit_once('/').ok_or(WRONG)?;
        Ok(Self {
            target: match kind {
                "firewall" => RuleTarget::Firewall(id.parse().map_err(|_| WRONG)?),
                "network" => RuleTarget::Network(id.parse().map_err(|_| WRONG)?),
                _ => return Err(WRONG),
            },
            owner: match owner {
                "operator" => RuleOwner::Operator,
                "tenant" => RuleOwner::Tenant,
                _ => return Err(WRONG),
            },
        })
    }
}
