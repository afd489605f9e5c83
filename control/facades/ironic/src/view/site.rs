//! The site: hardware types, conductors, shards.

use std::collections::BTreeMap;

use control_state::ControlNode;
use serde_json::{Map, Value, json};

use super::{links, time};

/// The hardware types. All of them stand for the agents of metalmesh: clients and their scripts name
/// `redfish` or `ipmi` where they enrol nodes.
pub(crate) static HARDWARE_TYPES: [&str; 3] = ["metalmesh", "redfish", "ipmi"];
/// The interface that the agents of metalmesh implement.
const OURS: &str = "metalmesh";
/// Interfaces by their kind: those that are enabled, the default first.
const INTERFACES: [(&str, &[&str]); 13] = [
    ("bios", &[OURS, "no-bios"]),
    ("boot", &[OURS]),
    ("console", &["no-console"]),
    ("deploy", &[OURS]),
    ("firmware", &[OURS, "no-firmware"]),
    ("inspect", &[OURS, "no-inspect"]),
    ("management", &[OURS]),
    ("network", &[OURS]),
    ("power", &[OURS]),
    ("raid", &["no-raid"]),
    ("rescue", &["no-rescue"]),
    ("storage", &[OURS]),
    ("vendor", &["no-vendor"]),
];

/// The interfaces of a kind that are enabled, the default first. `None` means that there is no such
/// kind.
pub(crate) fn interfaces(kind: &str) -> Option<&'static [&'static str]> {
    let found = INTERFACES.iter().find(|(known, _)| *known == kind);
    found.map(|(_, enabled)| *enabled)
}

/// The host name of a control node, which is a conductor to clients.
pub(crate) fn conductor_name(node: u64) -> String {
    format!("control-{node}")
}

/// A hardware type. `is_detailed` adds its interfaces.
pub(crate) fn driver(name: &str, hosts: &[String], base: &str, is_detailed: bool) -> Value {
    let address = format!("{base}/v1/drivers/{name}");
    let mut shown = Map::from_iter([
        ("name".to_owned(), name.into()),
        ("hosts".to_owned(), hosts.into()),
        ("type".to_owned(), "dynamic".into()),
        ("links".to_owned(), links(&address)),
        (
            "properties".to_owned(),
            links(&format!("{address}/properties")),
        ),
    ]);
    if is_detailed {
        for (kind, enabled) in INTERFACES {
            shown.insert(format!("default_{kind}_interface"), enabled[0].into());
            shown.insert(format!("enabled_{kind}_interfaces"), json!(enabled));
        }
    }
    Value::Object(shown)
}

/// A conductor. `is_alive` is `true` for a member of the cluster.
pub(crate) fn conductor(node: &ControlNode, base: &str, is_alive: bool, now: Value) -> Value {
    let name = conductor_name(node.id);
    json!({
        "hostname": name,
        "conductor_group": "",
        "alive": is_alive,
        "drivers": HARDWARE_TYPES,
        "links": links(&format!("{base}/v1/conductors/{name}")),
        "created_at": time(node.joined_at.unwrap_or(node.invited_at)),
        "updated_at": now,
    })
}

/// The numbers of nodes by shard, in the order of names. Nodes without a shard are counted as
/// Ironic counts them.
pub(crate) fn shards<'a>(all: impl Iterator<Item = &'a str>) -> Value {
    let mut counts = BTreeMap::<&str, u64>::new();
    for shard in all {
        let name = if shard.is_empty() { "None" } else { shard };
        *counts.entry(name).or_default() += 1;
    }
    let rows = counts.into_iter();
    rows.map(|(name, count)| json!({ "name": name, "count": count }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_name_their_interfaces_on_demand() {
        let hosts = ["control-1".to_owned()];
        let short = driver("redfish", &hosts, "http://c", false);
        assert_eq!(short["links"][0]["href"], "http://c/v1/drivers/redfish");
        assert!(short.get("default_power_interface").is_none());
        let long = driver("redfish", &hosts, "http://c", true);
        assert_eq!(long["default_power_interface"], "metalmesh");
        assert_eq!(long["enabled_raid_interfaces"], json!(["no-raid"]));
        assert_eq!(interfaces("rescue"), Some(&["no-rescue"][..]));
        assert_eq!(interfaces("nonsense"), None);
    }

    #[test]
    fn shards_are_counted() {
        let shown = shards(["b", "", "a", "b"].into_iter());
        let expected = json!([
            {"name": "None", "count": 1},
            {"name": "a", "count": 1},
            {"name": "b", "count": 2},
        ]);
        assert_eq!(shown, expected);
    }
}
