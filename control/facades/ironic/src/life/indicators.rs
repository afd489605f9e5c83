//! Indicators: the identify LED.

use control_state::{BmcAction, Machine};
use serde_json::{Value, json};

use super::orders::order;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::patch::ObjectReader;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::link;

/// The rule for reading.
const GET: &str = "baremetal:node:get_indicator_state";
/// The rule for setting.
const SET: &str = "baremetal:node:set_indicator_state";
/// The component that the LED is of.
const COMPONENT: &str = "chassis";
/// Name of the LED within its component.
const NAME: &str = "led";
/// Name of the LED among those of all components.
const UNIQUE_NAME: &str = "led@chassis";
/// State of an LED of which nothing was reported.
const UNKNOWN: &str = "unknown";

/// `GET /nodes/{node}/management/indicators`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(GET).await?;
        let path = format!("nodes/{}/management/indicators/{UNIQUE_NAME}", node.id());
        let base = call.base;
        let indicator = json!({
            "name": UNIQUE_NAME,
            "component": COMPONENT,
            "readonly": false,
            "states": ["off", "on"],
            "links": [
                link(&format!("{base}/v1/{path}"), "self"),
                link(&format!("{base}/{path}"), "bookmark"),
            ],
        });
        Ok(IronicAnswer::ok(json!({ "indicators": [indicator] })))
    })
}

/// `GET /nodes/{node}/management/indicators/{indicator}`, or with its component before it.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(GET).await?;
        check_name(call)?;
        Ok(IronicAnswer::ok(json!({ "state": state(&node.machine) })))
    })
}

/// `PUT /nodes/{node}/management/indicators/{indicator}`, or with its component before it.
pub(super) fn set<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(SET).await?;
        check_name(call)?;
        order(call, &node, wanted(call.body)?).await?;
        Ok(IronicAnswer::no_content())
    })
}

fn check_name(call: &IronicCall<'_>) -> Result<(), IronicError> {
    let (component, name) = (call.parameter("component"), call.parameter("indicator"));
    if is_led(component, name) {
        return Ok(());
    }
    let text = format!(
        "There is no indicator \"{name}\": the only one is \"{UNIQUE_NAME}\", the identify LED"
    );
    Err(IronicError::invalid(text))
}

/// `true` for the two ways to name the LED; `component` is empty in the first one.
fn is_led(component: &str, name: &str) -> bool {
    match component {
        "" => name == UNIQUE_NAME,
        component => component == COMPONENT && (name == NAME || name == UNIQUE_NAME),
    }
}

/// The state that the BMC last reported, or the one of the last order.
fn state(machine: &Machine) -> &str {
    match machine.led.value.as_str() {
        "" => UNKNOWN,
        value => value,
    }
}

/// The action that a request asks for.
///
/// # Errors
/// 400 for a state that agents cannot set.
fn wanted(body: &Value) -> Result<BmcAction, IronicError> {
    let reader = ObjectReader::new(body);
    reader.check_known(&["state"])?;
    let state = reader.text("state")?.unwrap_or_default();
    match state.to_ascii_lowercase().as_str() {
        "on" => Ok(BmcAction::LedOn),
        "off" => Ok(BmcAction::LedOff),
        _ => {
            let text = format!("Invalid indicator state \"{state}\": it is on or off");
            Err(IronicError::invalid(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::SeenNode;

    #[test]
    fn names_of_the_led() {
        for (component, name, expected) in [
            ("", "led@chassis", true),
            ("chassis", "led", true),
            ("chassis", "led@chassis", true),
            ("", "led", false),
            ("system", "led", false),
            ("chassis", "power", false),
        ] {
            assert_eq!(is_led(component, name), expected, "{component} {name}");
        }
    }

    #[test]
    fn states_of_the_led() {
        for (led, expected) in [(json!({}), UNKNOWN), (json!({"value": "on"}), "on")] {
            let node = SeenNode::of_json(json!({ "led": led }), None);
            assert_eq!(state(&node.machine), expected);
        }
        for (body, expected) in [
            (json!({"state": "on"}), Some(BmcAction::LedOn)),
            (json!({"state": "OFF"}), Some(BmcAction::LedOff)),
            (json!({"state": "blinking"}), None),
            (json!({}), None),
            (json!({"state": "on", "color": "red"}), None),
        ] {
            assert_eq!(wanted(&body).ok(), expected, "{body}");
        }
    }
}
