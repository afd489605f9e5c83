//! Changes of hardware that metalmesh does not make: they are refused as Ironic refuses them of an
//! interface that a driver does not have.

use control_state::query::node_state;
use serde_json::Value;

use super::refusals::unsupported;
use crate::access::SeenNode;
use crate::error::IronicError;
use crate::patch::ObjectReader;
use crate::request::IronicCall;
use crate::route::HandlerFuture;

/// The boot modes that requests may name.
const BOOT_MODES: [&str; 2] = ["bios", "uefi"];

/// `PUT /nodes/{node}/states/boot_mode`.
pub(super) fn set_boot_mode<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:set_boot_mode").await?;
        check_boot_mode(call.body)?;
        check_settled(call, &node)?;
        Err(unsupported(&node, "set_boot_mode"))
    })
}

/// `PUT /nodes/{node}/states/secure_boot`.
pub(super) fn set_secure_boot<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:set_secure_boot").await?;
        let target = ObjectReader::new(call.body).flag("target")?;
        if target.is_none() {
            let text = "Invalid secure_boot None requested for node. Allowed secure_boot states are: \
                        True, False)";
            return Err(IronicError::invalid(text));
        }
        check_settled(call, &node)?;
        Err(unsupported(&node, "set_secure_boot_state"))
    })
}

/// `PUT /nodes/{node}/states/raid`.
pub(super) fn set_raid<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:set_raid_state").await?;
        Err(unsupported(&node, "raid"))
    })
}

/// `PUT /nodes/{node}/management/inject_nmi`.
pub(super) fn inject_nmi<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:inject_nmi").await?;
        Err(unsupported(&node, "inject_nmi"))
    })
}

fn check_boot_mode(body: &Value) -> Result<(), IronicError> {
    let target = ObjectReader::new(body).text("target")?.unwrap_or_default();
    if BOOT_MODES.contains(&target) {
        return Ok(());
    }
    let modes = BOOT_MODES.join(", ");
    Err(IronicError::invalid(format!(
        "Invalid boot mode {target} requested for node. Allowed boot modes are: {modes}"
    )))
}

/// Refuses a node that is on its way to another state.
fn check_settled(call: &IronicCall<'_>, node: &SeenNode) -> Result<(), IronicError> {
    let state = node_state(&node.machine, node.record.as_deref(), call.now()).state;
    if !state.is_working() {
        return Ok(());
    }
    Err(IronicError::conflict(format!(
        "Node is in {} state. Since node is transitioning, the boot mode will not be set as this may \
         interfere with ongoing changes and result in erroneous modification. Try again later.",
        state.as_str()
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn boot_modes() {
        for (body, expected) in [
            (json!({"target": "uefi"}), true),
            (json!({"target": "bios"}), true),
            (json!({"target": "UEFI"}), false),
            (json!({"target": true}), false),
            (json!({}), false),
        ] {
            assert_eq!(check_boot_mode(&body).is_ok(), expected, "{body}");
        }
    }
}
