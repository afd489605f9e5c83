//! What a BMC tells of itself and of the box around the machine. Pure.

use serde_json::Value;

use crate::json::text;
use crate::power::PowerLinks;
use crate::system::System;

/// The BMC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manager {
    pub firmware_version: String,
    pub model: String,
    /// Of its first network interface, lower case; empty when not told.
    pub mac: String,
}

/// The box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chassis {
    pub manufacturer: String,
    pub model: String,
    pub part_number: String,
    pub serial: String,
    pub(crate) power: PowerLinks,
}

/// All of it. Manager and chassis are as complete as the BMC lets them be.
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

/// The address of an Ethernet interface, the burnt-in one first.
pub(crate) fn mac(value: &Value) -> String {
    ["PermanentMACAddress", "MACAddress"]
        .iter()
        .map(|name| text(value, name).to_ascii_lowercase())
        .find(|mac| !mac.is_empty())
        .unwrap_or_default()
}
