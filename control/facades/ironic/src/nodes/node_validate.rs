//! `GET /nodes/{node}/validate`.

use control_state::Bmc;
use serde_json::{Map, Value, json};

use super::node_filter::driver_name;
use crate::access::SeenNode;
use crate::answer::IronicAnswer;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{INTERFACE_KINDS, interfaces, stored};

/// The field of `instance_info` without which there is nothing to deploy.
const IMAGE_SOURCE: &str = "image_source";
/// The kind of interface that Ironic does not validate.
const VENDOR: &str = "vendor";

/// `GET /nodes/{node}/validate`.
pub(super) fn validate<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:validate").await?;
        Ok(IronicAnswer::ok(validation(&node)))
    })
}

/// For each kind of interface whether it can work, and the reason if it cannot.
fn validation(node: &SeenNode) -> Value {
    let kinds = INTERFACE_KINDS.iter().filter(|kind| **kind != VENDOR);
    let results = kinds.map(|kind| {
        let result = match obstacle(node, kind) {
            None => json!({ "result": true }),
            Some(reason) => json!({ "result": false, "reason": reason }),
        };
        ((*kind).to_owned(), result)
    });
    Value::Object(results.collect::<Map<String, Value>>())
}

/// The reason why an interface cannot work. `None` means that it can.
fn obstacle(node: &SeenNode, kind: &str) -> Option<String> {
    let content = stored(node);
    let chosen = content.interfaces.get(&format!("{kind}_interface"));
    let default = interfaces(kind).and_then(|enabled| enabled.first().copied());
    let interface = chosen.map(String::as_str).or(default);
    if interface.is_none_or(|interface| interface == format!("no-{kind}")) {
        let driver = driver_name(node);
        return Some(format!(
            "Driver {driver} does not support {kind} (disabled or not implemented)."
        ));
    }
    let bmc = node.machine.bmc.as_ref();
    match kind {
        "power" | "management" if !bmc.is_some_and(Bmc::was_read) => {
            Some("no BMC agent has read the BMC of the node yet".to_owned())
        }
        "deploy" if !content.instance_info.contains_key(IMAGE_SOURCE) => Some(format!(
            "Cannot validate image information for node {}: instance_info has no {IMAGE_SOURCE}",
            node.id()
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use control_state::NodeContent;

    use super::*;

    #[test]
    fn interfaces_that_cannot_work_say_why() {
        let read = json!({"bmc": {"address": "10.0.0.9", "updated_at": 1}});
        let with_image = NodeContent {
            instance_info: [(IMAGE_SOURCE.to_owned(), r#""debian-13""#.to_owned())].into(),
            interfaces: [("bios_interface".to_owned(), "no-bios".to_owned())].into(),
            ..NodeContent::default()
        };
        let plain = SeenNode::of_json(json!({}), None);
        let ready = SeenNode::of_json(read, Some(with_image));
        for (node, kind, expected) in [
            (&plain, "power", Some("no BMC agent")),
            (&plain, "management", Some("no BMC agent")),
            (&plain, "deploy", Some("has no image_source")),
            (&plain, "network", None),
            (&plain, "bios", None),
            (
                &plain,
                "rescue",
                Some("Driver metalmesh does not support rescue"),
            ),
            (&ready, "power", None),
            (&ready, "deploy", None),
            (&ready, "bios", Some("does not support bios")),
            (&ready, "console", Some("does not support console")),
        ] {
            let all = validation(node);
            let found = &all[kind];
            let reason = found["reason"].as_str();
            assert_eq!(found["result"], expected.is_none(), "{kind}");
            let is_named = reason
                .unwrap_or_default()
                .contains(expected.unwrap_or_default());
            assert!(is_named, "{kind}: {found}");
        }
        assert_eq!(validation(&plain).as_object().unwrap().len(), 12);
    }
}
