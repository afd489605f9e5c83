//! Refusals in Ironic's words.

use http::StatusCode;
use proto_types::MachineId;

use crate::access::SeenNode;
use crate::error::IronicError;
use crate::view::{HARDWARE_TYPES, stored};

/// 400: the verb does not count in the state of the node.
pub(super) fn invalid_state(action: &str, node: MachineId, state: &str) -> IronicError {
    IronicError::invalid(format!(
        "The requested action \"{action}\" can not be performed on node \"{node}\" while it is in \
         state \"{state}\"."
    ))
}

/// 409: a step is in progress. Clients repeat the request by themselves.
pub(super) fn locked(node: MachineId) -> IronicError {
    IronicError::conflict(format!(
        "Node {node} is locked by host metalmesh, please retry after the current operation is \
         completed."
    ))
}

/// 400: the node is in maintenance. `operation` is a participle.
pub(super) fn in_maintenance(operation: &str, node: MachineId) -> IronicError {
    IronicError::invalid(format!(
        "The {operation} operation can't be performed on node {node} because it's in maintenance \
         mode."
    ))
}

/// 400: the node is retired. `operation` is a participle.
pub(super) fn retired(operation: &str, node: MachineId) -> IronicError {
    IronicError::invalid(format!(
        "The {operation} operation can't be performed on node {node} because it is retired."
    ))
}

/// 403: the node is protected.
pub(super) fn protected(node: MachineId) -> IronicError {
    let text = format!("Node {node} is protected and cannot be undeployed, rebuilt or deleted");
    IronicError::new(StatusCode::FORBIDDEN, text)
}

/// 406: the microversion of the request does not have it yet.
pub(super) fn not_acceptable(what: &str, since: u16) -> IronicError {
    let text = format!("Request not acceptable: {what} needs at least the API version 1.{since}.");
    IronicError::new(StatusCode::NOT_ACCEPTABLE, text)
}

/// 400: metalmesh does not do this to a node.
pub(super) fn unsupported(node: &SeenNode, extension: &str) -> IronicError {
    IronicError::unsupported(driver(node), extension)
}

/// 400 as [`unsupported`], and what to do instead.
pub(super) fn unsupported_but(node: &SeenNode, extension: &str, remedy: &str) -> IronicError {
    let refused = unsupported(node, extension);
    IronicError::invalid(format!("{} {remedy}", refused.text))
}

/// The hardware type of a node.
pub(super) fn driver(node: &SeenNode) -> &str {
    let [default, ..] = HARDWARE_TYPES;
    match stored(node).driver.as_str() {
        "" => default,
        driver => driver,
    }
}

#[cfg(test)]
mod tests {
    use control_state::NodeContent;
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_name_the_driver_of_the_node() {
        for (driver, expected) in [("", "metalmesh"), ("redfish", "redfish")] {
            let content = NodeContent {
                driver: driver.to_owned(),
                ..NodeContent::default()
            };
            let node = SeenNode::of_json(json!({}), Some(content));
            let text =
                format!("Driver {expected} does not support rescue (disabled or not implemented).");
            assert_eq!(
                unsupported(&node, "rescue"),
                IronicError::invalid(text.as_str())
            );
            let but = unsupported_but(&node, "rescue", "Use another.");
            assert_eq!(but.text, format!("{text} Use another."));
            assert_eq!(but.status, StatusCode::BAD_REQUEST);
        }
    }
}
