//! Settings of the firmware, and firmware components of a node.

use control_state::{Bmc, Machine};
use serde_json::{Value, json};

use super::{links, text_or_null, time};
use crate::version::ApiVersion;

/// Microversion from which components have vendor, model and serial number.
const WITH_IDENTITY: u16 = 114;
/// Fields of every setting, whichever a request names.
const SETTING_HEAD: [&str; 3] = ["created_at", "updated_at", "links"];
/// Fields of every component, whichever a request names.
const COMPONENT_HEAD: [&str; 2] = ["created_at", "updated_at"];

/// The settings of the firmware that are known, by name. They are read only.
pub(crate) fn bios_settings(machine: &Machine) -> Vec<(&'static str, &str)> {
    let bios = &machine.bios;
    let all = [
        ("bios_version", bios.version.as_str()),
        ("bios_vendor", bios.vendor.as_str()),
        ("bios_date", bios.date.as_str()),
    ];
    let known = all.into_iter().filter(|(_, value)| !value.is_empty());
    known.collect()
}

/// A setting of the firmware with these fields beside its head.
pub(crate) fn bios_setting(
    machine: &Machine,
    base: &str,
    name: &str,
    value: &str,
    fields: &[&str],
) -> Value {
    let id = machine.id;
    let all = json!({
        "name": name,
        "value": value,
        "attribute_type": "String",
        "allowable_values": null,
        "lower_bound": null,
        "max_length": null,
        "min_length": null,
        "read_only": true,
        "reset_required": false,
        "unique": false,
        "upper_bound": null,
        "created_at": time(machine.meta.created_at),
        "updated_at": null,
        "links": links(&format!("{base}/v1/nodes/{id}/bios/{name}")),
    });
    with_fields(all, &SETTING_HEAD, fields)
}

/// The firmware components of a machine whose version is known, with these fields beside their head.
pub(crate) fn firmware(machine: &Machine, version: ApiVersion, fields: &[&str]) -> Vec<Value> {
    let (bios, fru) = (&machine.bios, &machine.fru);
    let bmc = machine.bmc.as_ref();
    let of_bmc = |text: fn(&Bmc) -> &str| bmc.map_or("", text);
    let all = [
        ("bios", bios.version.as_str(), bios.vendor.as_str()),
        ("bmc", of_bmc(|bmc| &bmc.version), ""),
    ];
    let known = all
        .into_iter()
        .filter(|(_, current, _)| !current.is_empty());
    let shown = known.map(|(component, current, vendor)| {
        let mut shown = json!({
            "component": component,
            // Control writes no firmware: the first version that it saw is that of today.
            "initial_version": current,
            "current_version": current,
            "last_version_flashed": null,
            "created_at": time(machine.meta.created_at),
            "updated_at": null,
        });
        if version.has(WITH_IDENTITY) {
            shown["vendor"] = text_or_null(vendor);
            shown["model"] = text_or_null(&fru.product_part_number);
            shown["serial_number"] = text_or_null(&fru.product_serial);
        }
        with_fields(shown, &COMPONENT_HEAD, fields)
    });
    shown.collect()
}

fn with_fields(object: Value, head: &[&str], fields: &[&str]) -> Value {
    let is_kept = |name: &str| head.contains(&name) || fields.contains(&name);
    match object {
        Value::Object(all) => {
            let kept = all.into_iter().filter(|(name, _)| is_kept(name));
            Value::Object(kept.collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::SeenNode;

    fn node(bios: Value) -> SeenNode {
        let bmc = json!({"version": "2.0"});
        SeenNode::of_json(json!({"bios": bios, "bmc": bmc}), None)
    }

    #[test]
    fn settings_without_a_value_are_left_out() {
        let named = |bios| {
            let node = node(bios);
            let settings = bios_settings(&node.machine);
            let names = settings.iter().map(|(name, _)| (*name).to_owned());
            names.collect::<Vec<String>>()
        };
        assert_eq!(named(json!({})), Vec::<String>::new());
        let all = json!({"version": "1", "vendor": "v", "date": "d"});
        assert_eq!(named(all), ["bios_version", "bios_vendor", "bios_date"]);
    }

    #[test]
    fn settings_have_the_fields_that_are_asked_for() {
        let node = node(json!({"version": "1"}));
        let machine = &node.machine;
        let shown = bios_setting(machine, "http://c", "bios_version", "1", &["name", "value"]);
        assert_eq!(shown["value"], "1");
        assert!(shown.get("read_only").is_none() && shown.get("created_at").is_some());
        let own = "http://c/v1/nodes/00000000-0000-0000-0000-000000000007/bios/bios_version";
        assert_eq!(shown["links"][0]["href"], own);
        let shown = bios_setting(machine, "http://c", "bios_version", "1", &["read_only"]);
        assert_eq!(shown["read_only"], true);
        assert!(shown.get("value").is_none());
    }

    #[test]
    fn components_are_those_of_a_known_version() {
        let all = ["component", "current_version", "vendor"];
        for (version, bios, expected) in [
            (115, json!({}), json!(["bmc"])),
            (
                115,
                json!({"version": "1", "vendor": "v"}),
                json!(["bios", "bmc"]),
            ),
            (
                113,
                json!({"version": "1", "vendor": "v"}),
                json!(["bios", "bmc"]),
            ),
        ] {
            let node = node(bios);
            let shown = firmware(&node.machine, ApiVersion::of(version), &all);
            let names: Value = shown.iter().map(|one| one["component"].clone()).collect();
            assert_eq!(names, expected, "{version}");
            for one in &shown {
                assert_eq!(one.get("vendor").is_some(), version >= 114, "{version}");
                assert!(one.get("initial_version").is_none());
            }
        }
    }
}
