//! `/nodes/{node}/traits`.

use std::collections::BTreeSet;

use control_state::{ClassChange, SetMachineCapability, TraitsChange};
use proto_types::TraitName;
use serde_json::{Value, json};

use crate::access::SeenNode;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::patch::ObjectReader;
use crate::request::IronicCall;
use crate::route::HandlerFuture;

/// The rule to change traits.
const SET: &str = "baremetal:node:traits:set";
/// The rule to remove traits.
const DELETE: &str = "baremetal:node:traits:delete";

/// `GET /nodes/{node}/traits`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:traits:list").await?;
        let traits = node.machine.capability.traits.iter();
        let names: Vec<&str> = traits.map(TraitName::as_str).collect();
        Ok(IronicAnswer::ok(json!({ "traits": names })))
    })
}

/// `PUT /nodes/{node}/traits`.
pub(super) fn replace<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(SET).await?;
        let traits = traits_of(call.body)?;
        change(call, &node, TraitsChange::Replace(traits)).await?;
        Ok(IronicAnswer::no_content())
    })
}

/// `PUT /nodes/{node}/traits/{trait}`.
pub(super) fn add<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(SET).await?;
        if !matches!(call.body, Value::Null) {
            let text = "No body should be provided when adding a trait";
            return Err(IronicError::invalid(text));
        }
        let name = trait_name(call.parameter("trait"))?;
        let location = call.link(&format!("/nodes/{}/traits/{name}", call.parameter("node")));
        let patch = TraitsChange::Patch {
            add: BTreeSet::from([name]),
            remove: BTreeSet::new(),
        };
        change(call, &node, patch).await?;
        Ok(IronicAnswer {
            location: Some(location),
            ..IronicAnswer::no_content()
        })
    })
}

/// `DELETE /nodes/{node}/traits`.
pub(super) fn clear<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(DELETE).await?;
        change(call, &node, TraitsChange::Replace(BTreeSet::new())).await?;
        Ok(IronicAnswer::no_content())
    })
}

/// `DELETE /nodes/{node}/traits/{trait}`.
pub(super) fn remove<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(DELETE).await?;
        let wanted = call.parameter("trait");
        let mut traits = node.machine.capability.traits.iter();
        let Some(name) = traits.find(|name| name.as_str() == wanted) else {
            let text = format!("Node {} doesn't have a trait '{wanted}'", node.id());
            return Err(IronicError::new(http::StatusCode::NOT_FOUND, text));
        };
        let patch = TraitsChange::Patch {
            add: BTreeSet::new(),
            remove: BTreeSet::from([name.clone()]),
        };
        change(call, &node, patch).await?;
        Ok(IronicAnswer::no_content())
    })
}

async fn change(
    call: &IronicCall<'_>,
    node: &SeenNode,
    traits: TraitsChange,
) -> Result<(), IronicError> {
    let command = SetMachineCapability {
        machine: node.id(),
        project: call.caller.writer(),
        resource_class: ClassChange::Keep,
        traits: Some(traits),
    };
    call.propose(command).await.map(drop)
}

fn trait_name(text: &str) -> Result<TraitName, IronicError> {
    text.parse::<TraitName>()
        .map_err(|error| IronicError::invalid(error.to_string()))
}

/// The traits of a body `{"traits": [...]}`.
fn traits_of(body: &Value) -> Result<BTreeSet<TraitName>, IronicError> {
    let reader = ObjectReader::new(body);
    reader.check_known(&["traits"])?;
    let Value::Array(names) = reader.value("traits") else {
        let text = "traits: must be a list of names, all those that the node is to have";
        return Err(IronicError::invalid(text));
    };
    let name = |name: &Value| match name {
        Value::String(name) => trait_name(name),
        _ => Err(IronicError::invalid("traits: names must be texts")),
    };
    names.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_with_traits() {
        for (body, expected) in [
            (json!({"traits": []}), Some(vec![])),
            (
                json!({"traits": ["CUSTOM_B", "HW_CPU_X86_VMX", "CUSTOM_B"]}),
                Some(vec!["CUSTOM_B", "HW_CPU_X86_VMX"]),
            ),
            (json!({"traits": ["lower"]}), None),
            (json!({"traits": [1]}), None),
            (json!({"traits": "CUSTOM_B"}), None),
            (json!({"traits": [], "other": 1}), None),
            (json!({}), None),
            (Value::Null, None),
        ] {
            let read = traits_of(&body).ok();
            let names = read
                .as_ref()
                .map(|traits| traits.iter().map(TraitName::as_str));
            assert_eq!(names.map(Vec::from_iter), expected, "{body}");
        }
    }
}
