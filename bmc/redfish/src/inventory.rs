//! The inventory of the BMC itself and of the chassis. Without I/O.

use serde_json::Value;

use crate::json::text;
use crate::power_links::PowerLinks;
use crate::system::System;

/// The BMC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manager {
    pub firmware_version: String,
    pub model: String,
    /// MAC address of its first network interface, lower case. Empty means not reported.
    pub mac: String,
}

/// The chassis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chassis {
    pub manufacturer: String,
    pub model: String,
    pub part_number: String,
    pub serial: String,
    pub(crate) power: PowerLinks,
}

/// System, BMC and chassis. Fields that the BMC does not report are empty.
#[derive(Debug, Clone)]
pub struct Inventory {
    pub system: System,
    pub manager: Manager,
    pub chassis: Chassis,
}

impl Manager {
    pub(crate) fn read(value: &Value) -> Self {
        Self {
            firmware_version: text(value, "FirmwareVersion"),
            model: text(value, "Model"),
            mac: String::new(),
        }
    }
}

impl Chassis {
    pub(crate) fn read(value: &Value) -> Self {
        Self {
            manufacturer: text(value, "Manufacturer"),
            model: text(value, "Model"),
            part_number: text(value, "PartNumber"),
            serial: text(value, "SerialNumber"),
            power: PowerLinks::read(value),
        }
    }
}

/// MAC address of an Ethernet interface, the permanent one if it is reported.
pub(crate) fn mac(value: &Value) -> String {
    ["PermanentMACAddress", "MACAddress"]
        .iter()
        .map(|name| text(value, name).to_ascii_lowercase())
        .find(|mac| !mac.is_empty())
        .unwrap_or_default()
}
