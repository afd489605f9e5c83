use thiserror::Error;

use crate::model::{PolicyName, PortName};

/// A part of a model that FRR cannot have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RoutingError {
    /// A port's name looks like an address or has characters that FRR refuses.
    #[error("FRR takes no neighbour on a port named {0}")]
    Interface(PortName),
    /// The name is that of a route map which FRR's configuration always has, or not one of ours.
    #[error("policy {0} has a name that is not for models")]
    Name(PolicyName),
    /// A rule has two conditions of one kind, or the number 0.
    #[error("FRR cannot have rule {sequence} of route map {map}")]
    Rule {
        /// The route map.
        map: PolicyName,
        /// Number of the rule.
        sequence: u16,
    },
    /// An AS number is 0.
    #[error("{0} is no AS number")]
    Asn(u32),
}
