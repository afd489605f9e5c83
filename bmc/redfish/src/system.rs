//! The machine of a BMC, from its `ComputerSystem` resource. Without I/O.

use serde_json::{Value, json};

use crate::boot_override::BootOverride;
use crate::error::RedfishError;
use crate::json::{link, text, texts};
use crate::reset::{PowerState, Reset};

/// State of the locator light.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Led {
    Off,
    Blinking,
    On,
}

/// One `ComputerSystem`.
#[derive(Debug, Clone)]
pub struct System {
    /// Path of its resource.
    pub path: String,
    /// SMBIOS UUID, lower case. Empty means not reported.
    pub uuid: String,
    pub manufacturer: String,
    pub model: String,
    pub serial: String,
    pub part_number: String,
    pub bios_version: String,
    /// The operator's asset tag. Empty means unset or not supported.
    pub asset_tag: String,
    pub power: PowerState,
    pub led: Option<Led>,
    /// Firmware mode of the override, as reported: "UEFI" or "Legacy".
    pub boot_mode: String,
    pub(crate) managers: Vec<String>,
    pub(crate) chassis: Vec<String>,
    pub(crate) reset_path: Option<String>,
    pub(crate) reset_info: Option<String>,
    pub(crate) reset_values: Option<Vec<String>>,
    boot_targets: Option<Vec<String>>,
    boot_spans: Option<Vec<String>>,
    /// `true` if the system has the newer property of the locator light.
    location_indicator: bool,
}

impl System {
    /// Reads a resource.
    pub(crate) fn read(path: &str, value: &Value) -> Self {
        let reset = &value["Actions"]["#ComputerSystem.Reset"];
        let boot = &value["Boot"];
        let links = |name: &str| -> Vec<String> {
            let list = value["Links"][name].as_array();
            list.into_iter().flatten().filter_map(link).collect()
        };
        Self {
            path: path.to_owned(),
            uuid: text(value, "UUID").to_ascii_lowercase(),
            manufacturer: text(value, "Manufacturer"),
            model: text(value, "Model"),
            serial: text(value, "SerialNumber"),
            part_number: text(value, "PartNumber"),
            bios_version: text(value, "BiosVersion"),
            asset_tag: text(value, "AssetTag"),
            power: power(&text(value, "PowerState")),
            led: led(value),
            boot_mode: text(boot, "BootSourceOverrideMode"),
            managers: links("ManagedBy"),
            chassis: links("Chassis"),
            reset_path: reset["target"].as_str().map(str::to_owned),
            reset_info: reset["@Redfish.ActionInfo"].as_str().map(str::to_owned),
            reset_values: texts(reset, "ResetType@Redfish.AllowableValues"),
            boot_targets: texts(boot, "BootSourceOverrideTarget@Redfish.AllowableValues"),
            boot_spans: texts(boot, "BootSourceOverrideEnabled@Redfish.AllowableValues"),
            location_indicator: value["LocationIndicatorActive"].is_boolean(),
        }
    }

    /// The body of the reset action. A BMC that lists no allowable values gets the preferred one.
    pub(crate) fn reset_body(&self, reset: Reset) -> Result<Value, RedfishError> {
        let values = reset.values();
        let value = match &self.reset_values {
            None => values.first().copied(),
            Some(allowed) => values
                .iter()
                .copied()
                .find(|v| allowed.iter().any(|a| a == v)),
        };
        let value = value.ok_or_else(|| RedfishError::Unsupported {
            what: format!("reset type {}", values.join(" or ")),
            allowed: list(self.reset_values.as_deref()),
        })?;
        Ok(json!({ "ResetType": value }))
    }

    /// `true` if the BMC lists a value for this change, or lists none at all.
    #[must_use]
    pub fn can(&self, reset: Reset) -> bool {
        self.reset_values.as_ref().is_none_or(|allowed| {
            reset
                .values()
                .iter()
                .any(|v| allowed.iter().any(|a| a == v))
        })
    }

    /// The body that changes the boot device, and `true` if the change is persistent. A BMC without
    /// persistent overrides gets one for a single boot. The firmware mode is repeated as reported:
    /// some BMCs require it, and another mode would make an installed system unbootable.
    pub(crate) fn boot_body(&self, boot: BootOverride) -> Result<(Value, bool), RedfishError> {
        let target = boot.target.value();
        if let Some(allowed) = &self.boot_targets
            && !allowed.iter().any(|a| a == target)
        {
            return Err(RedfishError::Unsupported {
                what: format!("boot target {target}"),
                allowed: list(Some(allowed)),
            });
        }
        let can_last = self
            .boot_spans
            .as_ref()
            .is_none_or(|spans| spans.iter().any(|s| s == "Continuous"));
        let persistent = boot.persistent && can_last;
        let span = if persistent { "Continuous" } else { "Once" };
        if let Some(spans) = &self.boot_spans
            && !spans.iter().any(|allowed| allowed == span)
        {
            return Err(RedfishError::Unsupported {
                what: format!("boot override {span}"),
                allowed: list(Some(spans)),
            });
        }
        let mut body = json!({ "Boot": {
            "BootSourceOverrideEnabled": span,
            "BootSourceOverrideTarget": target,
        }});
        if !self.boot_mode.is_empty() {
            body["Boot"]["BootSourceOverrideMode"] = json!(self.boot_mode);
        }
        Ok((body, persistent))
    }

    /// The body that changes the light, by the property that the system has.
    pub(crate) fn led_body(&self, on: bool) -> Value {
        if self.location_indicator {
            json!({ "LocationIndicatorActive": on })
        } else {
            json!({ "IndicatorLED": if on { "Lit" } else { "Off" } })
        }
    }
}

fn list(values: Option<&[String]>) -> String {
    match values {
        Some([]) | None => "nothing".into(),
        Some(values) => values.join(", "),
    }
}

fn power(text: &str) -> PowerState {
    match text {
        "On" => PowerState::On,
        "Off" => PowerState::Off,
        _ => PowerState::Other,
    }
}

pub(crate) fn led(value: &Value) -> Option<Led> {
    match (
        value["LocationIndicatorActive"].as_bool(),
        value["IndicatorLED"].as_str(),
    ) {
        (_, Some("Lit")) | (Some(true), _) => Some(Led::On),
        (_, Some("Blinking")) => Some(Led::Blinking),
        (_, Some("Off")) | (Some(false), _) => Some(Led::Off),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot_override::BootTarget;

    fn system(value: &Value) -> System {
        System::read("/redfish/v1/Systems/1", value)
    }

    fn resets(allowed: &[&str]) -> System {
        system(&json!({ "Actions": { "#ComputerSystem.Reset": {
            "target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
            "ResetType@Redfish.AllowableValues": allowed,
        }}}))
    }

    #[test]
    fn power_on_is_never_a_restart() {
        let body =
            |system: &System, reset| system.reset_body(reset).map(|b| b["ResetType"].clone());
        let usual = resets(&["ForceOff", "On", "ForceRestart", "PowerCycle"]);
        assert_eq!(body(&usual, Reset::On).unwrap(), "On");
        assert_eq!(body(&usual, Reset::PowerCycle).unwrap(), "PowerCycle");
        assert_eq!(body(&resets(&["ForceOn"]), Reset::On).unwrap(), "ForceOn");
        let restart_only = resets(&["ForceRestart", "GracefulRestart"]);
        let error = body(&restart_only, Reset::On).unwrap_err().to_string();
        assert!(
            error.contains("allows ForceRestart, GracefulRestart"),
            "{error}"
        );
        assert!(!restart_only.can(Reset::PowerCycle));
        assert_eq!(
            body(&system(&json!({})), Reset::On).unwrap(),
            "On",
            "nothing listed"
        );
    }

    #[test]
    fn the_boot_override_keeps_the_mode_and_falls_back_to_one_boot() {
        let boot = |persistent, target| BootOverride { target, persistent };
        let uefi = system(&json!({ "Boot": {
            "BootSourceOverrideMode": "UEFI",
            "BootSourceOverrideTarget@Redfish.AllowableValues": ["Pxe", "Hdd"],
        }}));
        let (body, lasts) = uefi.boot_body(boot(true, BootTarget::Disk)).unwrap();
        assert_eq!(
            body["Boot"],
            json!({
                "BootSourceOverrideEnabled": "Continuous",
                "BootSourceOverrideTarget": "Hdd",
                "BootSourceOverrideMode": "UEFI",
            })
        );
        assert!(lasts);
        let error = uefi
            .boot_body(boot(false, BootTarget::BiosSetup))
            .unwrap_err()
            .to_string();
        assert!(error.contains("BiosSetup; it allows Pxe, Hdd"), "{error}");
        let once = system(&json!({ "Boot": {
            "BootSourceOverrideEnabled@Redfish.AllowableValues": ["Once", "Disabled"],
        }}));
        let (body, lasts) = once.boot_body(boot(true, BootTarget::Pxe)).unwrap();
        assert_eq!(body["Boot"]["BootSourceOverrideEnabled"], "Once");
        assert!(!lasts);
        assert!(body["Boot"].get("BootSourceOverrideMode").is_none());
        let lasting = system(&json!({ "Boot": {
            "BootSourceOverrideEnabled@Redfish.AllowableValues": ["Disabled", "Continuous"],
        }}));
        let refused = lasting.boot_body(boot(false, BootTarget::BiosSetup));
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("Once; it allows Disabled, Continuous"),
            "{refused}"
        );
    }

    #[test]
    fn both_properties_of_the_light_are_read_and_written() {
        let old = system(&json!({ "IndicatorLED": "Blinking" }));
        assert_eq!(old.led, Some(Led::Blinking));
        assert_eq!(old.led_body(true), json!({ "IndicatorLED": "Lit" }));
        let new = system(&json!({ "LocationIndicatorActive": true }));
        assert_eq!(new.led, Some(Led::On));
        assert_eq!(
            new.led_body(false),
            json!({ "LocationIndicatorActive": false })
        );
        assert_eq!(system(&json!({})).led, None);
    }

    #[test]
    fn nulls_and_wrong_types_are_empty() {
        let odd = system(&json!({
            "UUID": null, "PowerState": 3, "Boot": [], "Links": "x", "AssetTag": null,
        }));
        assert_eq!((odd.uuid.as_str(), odd.power), ("", PowerState::Other));
        assert_eq!(odd.asset_tag, "");
        assert!(odd.managers.is_empty());
    }
}
