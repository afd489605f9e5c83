//! The BMCs and the protocols to use with them.

use std::net::IpAddr;

use bmc_redfish::Trust;
use proto_types::MachineId;
use serde::Deserialize;

/// The choice of the protocol for a BMC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// Redfish if its trust is configured and it answers, else IPMI.
    #[default]
    Auto,
    Redfish,
    Ipmi,
}

/// Protocol, ports and trust of a BMC.
#[derive(Debug, Clone)]
pub struct Speech {
    pub interface: Interface,
    pub redfish_port: u16,
    pub ipmi_port: u16,
    /// `None` means that Redfish is not used.
    pub trust: Option<Trust>,
    /// `true` means that IPMI sets boot devices for UEFI firmware. Redfish reports the mode itself.
    pub efi: bool,
}

/// One BMC.
#[derive(Debug, Clone)]
pub struct Target {
    pub address: IpAddr,
    pub speech: Speech,
    /// The machine of a BMC that reports no UUID or a wrong one. `None` means use the reported one.
    pub machine: Option<MachineId>,
}
