use serde::{Deserialize, Serialize};

/// The effect of a rule on a new flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The packet passes. Its flow passes from then on.
    Accept,
    /// The packet is dropped. Later rules do not see it.
    Drop,
    /// The packet is counted and logged, and later rules decide.
    Log,
}

impl Action {
    /// Name in chains and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Drop => "drop",
            Self::Log => "log",
        }
    }
}

/// Flows that a rule is for, by the interfaces of the project's own networks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Packets that leave towards a private network.
    Ingress,
    /// Packets that come from a private network.
    Egress,
    /// Both, and everything else that is forwarded.
    #[default]
    Any,
}

impl Direction {
    /// Name in chains and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
            Self::Any => "any",
        }
    }
}
