//! The body of a request for an allocation.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use proto_types::{ProjectId, ResourceClass, TraitName};
use serde_json::Value;
use uuid::Uuid;

use crate::error::IronicError;
use crate::patch::{ObjectReader, check_levels, is_logical_name};
use crate::view::stored_extra;

/// Fields of a request.
const FIELDS: [&str; 8] = [
    "candidate_nodes",
    "extra",
    "name",
    "node",
    "owner",
    "resource_class",
    "traits",
    "uuid",
];
/// Most candidates of a request, and most traits; more are refused.
const ITEMS_MAX: usize = 1_000;

/// A request for an allocation, without a look at the nodes that it names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AllocationRequest<'a> {
    /// Its id. `None` means that control gives it one.
    pub(super) id: Option<Uuid>,
    /// Name.
    pub(super) name: Option<&'a str>,
    /// The project that it is bound to. `None` means that the request names none.
    owner: Option<ProjectId>,
    /// Resource class. `None` means that of the node.
    pub(super) class: Option<ResourceClass>,
    /// Traits that the node must have.
    pub(super) traits: BTreeSet<TraitName>,
    /// Ids or names of the nodes to choose from.
    pub(super) candidates: Vec<&'a str>,
    /// The node that is in use already. `None` means that one is chosen.
    pub(super) node: Option<&'a str>,
    /// Additional fields, as they are stored.
    pub(super) extra: BTreeMap<String, String>,
}

impl<'a> AllocationRequest<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// 400 for an unknown field, for a value that breaks a rule, and without a resource class.
    pub(super) fn parse(body: &'a Value) -> Result<Self, IronicError> {
        let reader = ObjectReader::new(body);
        reader.check_known(&FIELDS)?;
        let name = reader.text("name")?;
        if let Some(name) = name.filter(|name| !is_logical_name(name)) {
            let text = format!("Cannot create allocation with invalid name '{name}'");
            return Err(IronicError::invalid(text));
        }
        let node = reader.text("node")?;
        let class = reader.text("resource_class")?;
        if class.is_none() && node.is_none() {
            let text = "The resource_class field is mandatory when not backfilling";
            return Err(IronicError::invalid(text));
        }
        let class = class.map(|class| class.parse::<ResourceClass>());
        let class = class
            .transpose()
            .map_err(|error| IronicError::invalid(error.to_string()))?;
        let traits = texts(reader, "traits")?.into_iter();
        let traits: Result<BTreeSet<TraitName>, _> = traits.map(str::parse).collect();
        Ok(Self {
            id: reader.uuid("uuid")?,
            name,
            owner: reader.project("owner")?,
            class,
            traits: traits.map_err(|error| IronicError::invalid(error.to_string()))?,
            candidates: texts(reader, "candidate_nodes")?,
            node,
            extra: extra(reader.value("extra"))?,
        })
    }

    /// The project that the allocation is bound to: the caller's. An administrator may name any, or
    /// none.
    ///
    /// # Errors
    /// 403 for another project than the caller's, whatever the policy permits: the machine would be held
    /// in the name of a project that did not ask for it.
    pub(super) fn owner(
        &self,
        caller: Option<ProjectId>,
    ) -> Result<Option<ProjectId>, IronicError> {
        match (self.owner, caller) {
            (Some(owner), Some(own)) if owner != own => {
                let text = format!(
                    "Cannot create allocation with an owner Project ID value {owner} not matching the \
                     requester Project ID {own}. Policy baremetal:allocation:create_restricted is \
                     required for this capability."
                );
                Err(IronicError::new(StatusCode::FORBIDDEN, text))
            }
            (owner, caller) => Ok(caller.or(owner)),
        }
    }
}

/// Additional fields as they are stored. `Null` is an empty object.
///
/// # Errors
/// 400 for another value.
pub(super) fn extra(value: &Value) -> Result<BTreeMap<String, String>, IronicError> {
    match value {
        Value::Null => Ok(BTreeMap::new()),
        Value::Object(fields) => {
            check_levels("extra", value)?;
            let stored = fields
                .iter()
                .map(|(name, value)| (name.clone(), stored_extra(value)));
            Ok(stored.collect())
        }
        _ => Err(IronicError::invalid("extra: must be an object")),
    }
}

fn texts<'a>(reader: ObjectReader<'a>, name: &str) -> Result<Vec<&'a str>, IronicError> {
    let invalid = |rule: String| Err(IronicError::invalid(format!("{name}: {rule}")));
    let items = match reader.value(name) {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        _ => return invalid("must be a list".to_owned()),
    };
    if items.len() > ITEMS_MAX {
        return invalid(format!("must have at most {ITEMS_MAX} items"));
    }
    let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
    match texts {
        Some(texts) => Ok(texts),
        None => invalid("must be a list of texts".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PROJECT: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";

    #[test]
    fn requests_of_clients() {
        let body = json!({
            "resource_class": "rc1",
            "traits": ["CUSTOM_A"],
            "candidate_nodes": ["kn1"],
            "name": "al1",
            "owner": PROJECT.replace('-', ""),
            "extra": {"a": "b", "c": 1},
        });
        let stored = [("a", "b"), ("c", "json:1")];
        let expected = AllocationRequest {
            id: None,
            name: Some("al1"),
            owner: Some(PROJECT.parse().unwrap()),
            class: Some("rc1".parse().unwrap()),
            traits: ["CUSTOM_A".parse().unwrap()].into(),
            candidates: vec!["kn1"],
            node: None,
            extra: stored
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .into(),
        };
        assert_eq!(AllocationRequest::parse(&body), Ok(expected));
        let backfill = json!({"node": "kn1", "traits": null});
        let parsed = AllocationRequest::parse(&backfill).unwrap();
        assert_eq!((parsed.node, parsed.class), (Some("kn1"), None));
    }

    #[test]
    fn malformed_requests_are_refused() {
        for (body, part) in [
            (Value::Null, "must be a JSON object"),
            (json!({}), "resource_class field is mandatory"),
            (json!({"resource_class": "-"}), "resource class"),
            (
                json!({"resource_class": "a", "name": "a b"}),
                "invalid name 'a b'",
            ),
            (
                json!({"resource_class": "a", "name": PROJECT}),
                "invalid name",
            ),
            (json!({"resource_class": "a", "traits": ["gold"]}), "trait"),
            (
                json!({"resource_class": "a", "traits": "CUSTOM_A"}),
                "must be a list",
            ),
            (
                json!({"resource_class": "a", "candidate_nodes": [1]}),
                "a list of texts",
            ),
            (
                json!({"resource_class": "a", "candidate_nodes": vec!["n"; ITEMS_MAX + 1]}),
                "at most 1000 items",
            ),
            (
                json!({"resource_class": "a", "uuid": "x"}),
                "uuid: must be a UUID",
            ),
            (
                json!({"resource_class": "a", "owner": "ada"}),
                "owner: must be",
            ),
            (
                json!({"resource_class": "a", "extra": []}),
                "extra: must be an object",
            ),
            (
                json!({"resource_class": "a", "state": "active"}),
                "'state' was unexpected",
            ),
        ] {
            let refused = AllocationRequest::parse(&body).unwrap_err();
            assert!(refused.text.contains(part), "{part}: {}", refused.text);
        }
    }

    #[test]
    fn owners_of_allocations() {
        let (own, other): (ProjectId, ProjectId) =
            (PROJECT.parse().unwrap(), Uuid::from_u128(1).into());
        for (wanted, caller, expected) in [
            (None, None, Ok(None)),
            (Some(other), None, Ok(Some(other))),
            (None, Some(own), Ok(Some(own))),
            (Some(own), Some(own), Ok(Some(own))),
            (Some(other), Some(own), Err(StatusCode::FORBIDDEN)),
        ] {
            let body = json!({"resource_class": "a", "owner": wanted.map(|id| id.to_string())});
            let request = AllocationRequest::parse(&body).unwrap();
            let found = request.owner(caller).map_err(|error| error.status);
            assert_eq!(found, expected, "{wanted:?} {caller:?}");
        }
    }
}
