//! The device that a node boots from.

use std::sync::Arc;

use control_state::life::machine_orders;
use control_state::{BmcAction, BmcOrder, Machine, OrderState, Phase};
use serde_json::{Value, json};

use super::orders::{order, write_content};
use crate::access::seen_node;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::patch::ObjectReader;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::stored;

/// The rule for reading the device.
const GET: &str = "baremetal:node:get_boot_device";
/// The rule for setting it.
const SET: &str = "baremetal:node:set_boot_device";
/// Fields of a request.
const FIELDS: [&str; 2] = ["boot_device", "persistent"];
/// The devices, with the actions of BMCs. The firmware's menu is for the next boot alone, the others
/// stay.
const DEVICES: [(&str, BmcAction); 3] = [
    ("pxe", BmcAction::BootPxe),
    ("disk", BmcAction::BootDisk),
    (MENU, BmcAction::BootBios),
];
/// The firmware's menu.
const MENU: &str = "bios";

/// `GET /nodes/{node}/management/boot_device`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let found = call.read(|tables| {
            let ident = call.parameter("node");
            let node = seen_node(tables, call.policy, call.caller, ident)?;
            let set = &stored(&node).boot_device;
            let orders = machine_orders(tables, node.id());
            let device = device(&node.machine, set, orders).to_owned();
            Ok((node, device))
        });
        let (node, device) = found.await?;
        call.require(GET, &node.target())?;
        let persistent = device != MENU;
        let shown = json!({ "boot_device": device, "persistent": persistent });
        Ok(IronicAnswer::ok(shown))
    })
}

/// `GET /nodes/{node}/management/boot_device/supported`.
pub(super) fn supported<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.node_for(GET).await?;
        let devices = DEVICES.map(|(device, _)| device);
        Ok(IronicAnswer::ok(
            json!({ "supported_boot_devices": devices }),
        ))
    })
}

/// `PUT /nodes/{node}/management/boot_device`.
pub(super) fn set<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(SET).await?;
        let (device, action) = wanted(call.body)?;
        order(call, &node, action).await?;
        let mut content = node.content();
        if content.boot_device != device {
            device.clone_into(&mut content.boot_device);
            write_content(call, &node, content).await?;
        }
        Ok(IronicAnswer::no_content())
    })
}

/// The device that a request names, and its action.
///
/// # Errors
/// 400 for another device, and for the firmware's menu as the device of all boots.
fn wanted(body: &Value) -> Result<(&'static str, BmcAction), IronicError> {
    let reader = ObjectReader::new(body);
    reader.check_known(&FIELDS)?;
    let named = reader.text("boot_device")?.unwrap_or_default();
    let persistent = reader.flag("persistent")?.unwrap_or(false);
    let found = DEVICES.into_iter().find(|(device, _)| *device == named);
    let found = found
        .ok_or_else(|| IronicError::invalid(format!("Invalid boot device {named} specified.")))?;
    if found.0 == MENU && persistent {
        let text = "bios is the firmware's menu, which is for the next boot alone: send \
                    persistent as false";
        return Err(IronicError::invalid(text));
    }
    Ok(found)
}

/// The device of the newest order that is not refused, else the one that a client set, else the one
/// that the machine's life needs.
fn device<'a>(
    machine: &Machine,
    set: &'a str,
    orders: impl Iterator<Item = &'a Arc<BmcOrder>>,
) -> &'a str {
    let counts =
        |order: &&Arc<BmcOrder>| matches!(order.state, OrderState::Open | OrderState::Done);
    let devices = orders.filter(counts).filter_map(|order| name(order.action));
    let by_life = if is_installed(machine) { "disk" } else { "pxe" };
    let set = Some(set).filter(|set| !set.is_empty());
    devices.last().or(set).unwrap_or(by_life)
}

fn name(action: BmcAction) -> Option<&'static str> {
    let found = DEVICES.into_iter().find(|(_, known)| *known == action);
    found.map(|(device, _)| device)
}

/// `true` if the machine boots its tenant's system.
fn is_installed(machine: &Machine) -> bool {
    matches!(
        machine.phase,
        Phase::BootOrder | Phase::Rebooting | Phase::TenantPorts | Phase::Running
    )
}

#[cfg(test)]
mod tests {
    use control_state::OrderPurpose;
    use proto_types::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::access::SeenNode;

    fn order(action: BmcAction, state: OrderState) -> Arc<BmcOrder> {
        Arc::new(BmcOrder {
            id: Uuid::nil().into(),
            machine: Uuid::nil().into(),
            partition: "lab".parse().unwrap(),
            action,
            purpose: OrderPurpose::Life,
            sequence: 1,
            state,
            created_at: Timestamp::ZERO,
            deadline: Timestamp::ZERO,
            finished_at: None,
            error: None,
            trace: None,
            taken_by: None,
            nonce: None,
            epoch: 0,
        })
    }

    #[test]
    fn the_device_of_a_node() {
        use BmcAction::{BootBios, BootDisk, BootPxe, PowerOn};
        use OrderState::{Done, Failed, Open};
        for (phase, set, orders, expected) in [
            ("waiting", "", vec![], "pxe"),
            ("running", "", vec![], "disk"),
            ("running", "pxe", vec![], "pxe"),
            ("waiting", "disk", vec![order(BootPxe, Done)], "pxe"),
            (
                "waiting",
                "",
                vec![
                    order(BootPxe, Done),
                    order(BootBios, Open),
                    order(PowerOn, Open),
                ],
                "bios",
            ),
            (
                "waiting",
                "",
                vec![order(BootDisk, Done), order(BootPxe, Failed)],
                "disk",
            ),
        ] {
            let node = SeenNode::of_json(json!({ "phase": phase }), None);
            let found = device(&node.machine, set, orders.iter());
            assert_eq!(found, expected, "{phase} {set} {orders:?}");
        }
    }

    #[test]
    fn devices_of_requests() {
        for (body, expected) in [
            (json!({"boot_device": "pxe"}), Ok("pxe")),
            (json!({"boot_device": "pxe", "persistent": true}), Ok("pxe")),
            (
                json!({"boot_device": "disk", "persistent": "False"}),
                Ok("disk"),
            ),
            (
                json!({"boot_device": "bios", "persistent": false}),
                Ok("bios"),
            ),
            (
                json!({"boot_device": "bios", "persistent": true}),
                Err("the next boot alone"),
            ),
            (
                json!({"boot_device": "cdrom"}),
                Err("Invalid boot device cdrom specified."),
            ),
            (json!({}), Err("Invalid boot device  specified.")),
            (json!({"boot_device": 1}), Err("must be a text")),
        ] {
            match (wanted(&body), expected) {
                (Ok((device, _)), Ok(expected)) => assert_eq!(device, expected, "{body}"),
                (Err(refused), Err(part)) => {
                    assert!(refused.text.contains(part), "{body}: {}", refused.text);
                }
                (found, _) => panic!("{body}: {found:?}"),
            }
        }
    }
}
