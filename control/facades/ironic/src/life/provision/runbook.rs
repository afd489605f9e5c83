//! The steps of a runbook.

use std::collections::BTreeSet;

use control_oslo::PolicyTarget;
use control_state::query::document_named;
use control_state::{DocumentKind, NodeDocument, Tables};
use serde_json::Value;
use uuid::Uuid;

use crate::access::SeenNode;
use crate::error::IronicError;
use crate::request::IronicCall;
use crate::view::object_of;

/// The rule for seeing a runbook.
const GET: &str = "baremetal:runbook:get";
/// The rule for using one.
const USE: &str = "baremetal:runbook:use";
/// Microversion from which a runbook has traits, one of which the node must have. Before it its name
/// is the trait.
const WITH_TRAITS: u16 = 112;

/// The part of a runbook that a node does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RunbookSteps {
    /// The steps.
    pub(super) steps: Vec<Value>,
    /// `true` if they are done without the installer.
    pub(super) disable_ramdisk: bool,
}

/// The steps of a runbook that the caller may use on the node.
///
/// # Errors
/// 404 for a runbook that the caller does not see, 403 for one that it may not use, 400 for one that is
/// not approved for the node.
pub(super) async fn runbook_steps(
    call: &IronicCall<'_>,
    node: &SeenNode,
    ident: &str,
) -> Result<RunbookSteps, IronicError> {
    let has_traits = call.version.has(WITH_TRAITS);
    let found = call.read(|tables| {
        let unknown = || IronicError::not_found("Runbook", ident);
        let runbook = find(tables, ident).ok_or_else(unknown)?;
        let owner = runbook.owner.map(|owner| owner.to_string());
        let target = PolicyTarget::runbook(owner.as_deref());
        let is_own = call.caller.reaches(runbook.owner);
        if !runbook.public {
            if !is_own || !call.permits(GET, &target) {
                return Err(unknown());
            }
            call.require(USE, &target)?;
        }
        approved(runbook, node, has_traits)
    });
    found.await
}

fn find<'a>(tables: &'a Tables, ident: &str) -> Option<&'a NodeDocument> {
    let document = match Uuid::parse_str(ident) {
        Ok(id) => tables.get::<NodeDocument>(&id),
        Err(_) => document_named(tables, DocumentKind::Runbook, ident),
    };
    let document = document.map(|document| &**document);
    document.filter(|document| document.kind == DocumentKind::Runbook)
}

/// The steps of a runbook, if a trait of the node approves it.
///
/// # Errors
/// 400.
fn approved(
    runbook: &NodeDocument,
    node: &SeenNode,
    has_traits: bool,
) -> Result<RunbookSteps, IronicError> {
    let fields = object_of(&runbook.fields);
    let list = |name: &str| fields[name].as_array().cloned().unwrap_or_default();
    let traits = list("traits");
    let wanted: BTreeSet<&str> = match has_traits {
        true => traits.iter().filter_map(Value::as_str).collect(),
        false => [runbook.name.as_str()].into(),
    };
    let mut own = node.machine.capability.traits.iter();
    if !own.any(|name| wanted.contains(name.as_str())) {
        let (id, wanted) = (node.id(), Vec::from_iter(wanted).join(", "));
        return Err(IronicError::invalid(format!(
            "This runbook has not been approved for use on this node {id}. The node does not have any \
             of the runbook's traits: {wanted}. Please ask an administrator to add a matching trait to \
             your node."
        )));
    }
    Ok(RunbookSteps {
        steps: list("steps"),
        disable_ramdisk: fields["disable_ramdisk"].as_bool().unwrap_or(false),
    })
}

#[cfg(test)]
mod tests {
    use control_state::{JsonFields, Meta};
    use serde_json::json;

    use super::*;

    fn runbook() -> NodeDocument {
        let fields = [
            ("steps", "[{\"interface\":\"deploy\",\"step\":\"hold\"}]"),
            ("traits", "[\"CUSTOM_B\",\"CUSTOM_C\"]"),
            ("disable_ramdisk", "true"),
        ];
        let owned = fields.map(|(name, text)| (name.to_owned(), text.to_owned()));
        NodeDocument {
            id: Uuid::from_u128(7),
            meta: Meta::default(),
            kind: DocumentKind::Runbook,
            name: "CUSTOM_A".to_owned(),
            owner: None,
            public: false,
            fields: JsonFields::from(owned),
        }
    }

    #[test]
    fn traits_approve_a_runbook() {
        for (traits, has_traits, expected) in [
            (json!([]), true, false),
            (json!(["CUSTOM_A"]), true, false),
            (json!(["CUSTOM_A"]), false, true),
            (json!(["CUSTOM_X", "CUSTOM_C"]), true, true),
            (json!(["CUSTOM_C"]), false, false),
        ] {
            let capability = json!({ "traits": traits });
            let node = SeenNode::of_json(json!({ "capability": capability }), None);
            let found = approved(&runbook(), &node, has_traits);
            assert_eq!(found.is_ok(), expected, "{traits} {has_traits}");
        }
    }

    #[test]
    fn a_runbook_has_its_steps() {
        let capability = json!({"traits": ["CUSTOM_B"]});
        let node = SeenNode::of_json(json!({ "capability": capability }), None);
        let expected = RunbookSteps {
            steps: vec![json!({"interface": "deploy", "step": "hold"})],
            disable_ramdisk: true,
        };
        assert_eq!(approved(&runbook(), &node, true), Ok(expected));
        let mut empty = runbook();
        empty.fields.remove("steps");
        assert_eq!(
            approved(&empty, &node, true).unwrap().steps,
            Vec::<Value>::new()
        );
    }
}
