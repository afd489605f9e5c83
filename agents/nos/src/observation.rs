use std::collections::BTreeMap;

use proto_wire_lldp::Mac;

use crate::model::{PortName, SwitchModel};

/// The observed state of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The part that can also be desired.
    pub model: SwitchModel,
    /// The hardware of each port, which nobody desires.
    pub links: BTreeMap<PortName, PortLink>,
}

/// The hardware of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLink {
    /// MAC address.
    pub mac: Mac,
    /// `true` if the port is administratively up and has a carrier.
    pub oper_up: bool,
}
