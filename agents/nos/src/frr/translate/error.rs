use thiserror::Error;

use crate::model::{PolicyName, PortName};

/// A part of a model that FRR cannot have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum RoutingError {
    /// A port's name looks like an address or has characters that FRR refuses.
    #[error("FRR takes no neighbour on a port named {0}")]
    Interface(PortName),
    /// The name is that of a route map which FRR's configuration always has, the end of the names
    /// of route maps for EVPN routes, or not one of ours.
    #[error("policy {0} has a name that is not for models")]
    Name(PolicyName),
    /// The name leaves no room for the end of the names of route maps for EVPN routes.
    #[error("route map {0} has rules for EVPN routes and a name of more than 58 bytes")]
    LongName(PolicyName),
    /// A rule that FRR would read in another way.
    #[error("rule {sequence} of route map {map} {fault}")]
    Rule {
        /// The route map.
        map: PolicyName,
        /// Number of the rule.
        sequence: u16,
        /// The reason.
        fault: RuleFault,
    },
    /// FRR would have no route map for the other routes of a neighbour, and refuse its name.
    #[error("every rule of route map {0} is for EVPN routes")]
    EvpnAlone(PolicyName),
    /// An AS number is 0.
    #[error("{0} is no AS number")]
    Asn(u32),
}

/// The reason why FRR cannot have a rule of a route map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum RuleFault {
    /// FRR numbers rules from 1.
    #[error("has a number below 1")]
    Number,
    /// FRR has one condition of each kind: a prefix list of each family, an as-path list, a VNI.
    #[error("has two conditions of one kind")]
    Repeated,
    /// A prefix list matches no EVPN route in the model. In FRR it would, by the prefix in it.
    #[error("has a VNI and a prefix list")]
    Mixed,
}
