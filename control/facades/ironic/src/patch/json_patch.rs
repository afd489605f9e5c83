//! A patch of an object.

use std::collections::BTreeSet;

use serde_json::Value;

use super::json_path;
use super::patch_operation::{PatchOperation, PatchVerb};
use crate::error::IronicError;

/// Most operations of a patch; a longer one is refused.
const OPERATIONS_MAX: usize = 256;

/// A patch: operations that are applied one after the other.
#[derive(Debug)]
pub(crate) struct JsonPatch(Vec<PatchOperation>);

impl JsonPatch {
    /// The patch of a request.
    ///
    /// # Errors
    /// 400 for a body that is no list of operations, and for one with more than [`OPERATIONS_MAX`].
    pub(crate) fn parse(body: &Value) -> Result<Self, IronicError> {
        let Value::Array(operations) = body else {
            let text = "the body must be a JSON Patch: a list of operations (RFC 6902)";
            return Err(IronicError::invalid(text));
        };
        if operations.len() > OPERATIONS_MAX {
            let text = format!("the patch must have at most {OPERATIONS_MAX} operations");
            return Err(IronicError::invalid(text));
        }
        let operations = operations.iter().map(PatchOperation::parse);
        operations.collect::<Result<_, _>>().map(Self)
    }

    /// The fields of the object that it touches, by which rules of the policy go.
    pub(crate) fn roots(&self) -> BTreeSet<&str> {
        self.0.iter().map(PatchOperation::root).collect()
    }

    /// Refuses a patch of other fields than these.
    ///
    /// # Errors
    /// 400, which names them.
    pub(crate) fn check_roots(&self, allowed: &[&str]) -> Result<(), IronicError> {
        let other = self
            .0
            .iter()
            .find(|operation| !allowed.contains(&operation.root()));
        let Some(other) = other else {
            return Ok(());
        };
        let (path, allowed) = (json_path::text(&other.path), allowed.join(", "));
        Err(IronicError::invalid(format!(
            "Cannot patch {path}. Only the following can be updated: {allowed}"
        )))
    }

    /// The value that it last gives to a field as a whole. `None` if it gives none.
    pub(crate) fn value_of(&self, root: &str) -> Option<&Value> {
        let whole = self.0.iter().rfind(|operation| {
            let sets = matches!(operation.verb, PatchVerb::Add | PatchVerb::Replace);
            sets && operation.path.len() == 1 && operation.root() == root
        });
        whole.map(|operation| &operation.value)
    }

    /// `true` if removing this field as a whole is all that it does.
    pub(crate) fn only_removes(&self, root: &str) -> bool {
        match self.0.as_slice() {
            [only] => only.verb == PatchVerb::Remove && only.path.len() == 1 && only.root() == root,
            _ => false,
        }
    }

    /// Changes an object, which has all of its fields, `null` where they are unset. A field that is
    /// removed is absent afterwards. After an error the object is to be thrown away: it may have a
    /// part of the changes.
    ///
    /// # Errors
    /// 400 for a new field, and for an operation that does not fit the object.
    pub(crate) fn apply(&self, object: &mut Value) -> Result<(), IronicError> {
        for operation in &self.0 {
            let is_new = operation.verb == PatchVerb::Add
                && operation.path.len() == 1
                && object.get(operation.root()).is_none();
            if is_new {
                let path = json_path::text(&operation.path);
                return Err(IronicError::invalid(format!(
                    "Adding a new attribute ({path}) to the root of the resource is not allowed"
                )));
            }
            operation.apply(object)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(object: Value, patch: Value) -> Result<Value, String> {
        let patch = JsonPatch::parse(&patch).map_err(|error| error.text)?;
        let mut object = object;
        patch.apply(&mut object).map_err(|error| error.text)?;
        Ok(object)
    }

    #[test]
    fn operations_change_the_object() {
        let before = json!({"name": null, "extra": {"a": 1}, "list": [1, 2]});
        for (patch, after) in [
            (
                json!([{"op": "add", "path": "/name", "value": "n"}]),
                json!({"name": "n", "extra": {"a": 1}, "list": [1, 2]}),
            ),
            (
                json!([
                    {"op": "add", "path": "/extra/b~1c", "value": {"d": null}},
                    {"op": "replace", "path": "/extra/b~1c/d", "value": 2},
                    {"op": "remove", "path": "/extra/a"},
                    {"op": "test", "path": "/extra/b~1c", "value": {"d": 2}},
                ]),
                json!({"name": null, "extra": {"b/c": {"d": 2}}, "list": [1, 2]}),
            ),
            (
                json!([{"op": "remove", "path": "/name"}]),
                json!({"extra": {"a": 1}, "list": [1, 2]}),
            ),
            (
                json!([
                    {"op": "add", "path": "/list/-", "value": 3},
                    {"op": "add", "path": "/list/0", "value": 0},
                    {"op": "remove", "path": "/list/1"},
                    {"op": "replace", "path": "/list/1", "value": 9},
                ]),
                json!({"name": null, "extra": {"a": 1}, "list": [0, 9, 3]}),
            ),
            (json!([]), before.clone()),
        ] {
            assert_eq!(applied(before.clone(), patch.clone()), Ok(after), "{patch}");
        }
    }

    #[test]
    fn operations_that_do_not_fit_are_refused() {
        let before = json!({"name": null, "extra": {}, "list": []});
        for (patch, reason) in [
            (
                json!([{"op": "remove", "path": "/extra/a"}]),
                "Couldn't apply patch '{'op': 'remove', 'path': '/extra/a'}'. Reason: can't remove \
                 a non-existent object 'a'",
            ),
            (
                json!([{"op": "replace", "path": "/extra/a", "value": 1}]),
                "can't replace a non-existent object 'a'",
            ),
            (
                json!([{"op": "add", "path": "/extra/a/b", "value": 1}]),
                "member 'a' not found",
            ),
            (
                json!([{"op": "add", "path": "/name/b", "value": 1}]),
                "part of a plain value",
            ),
            (
                json!([{"op": "add", "path": "/new", "value": 1}]),
                "Adding a new attribute (/new) to the root",
            ),
            (
                json!([{"op": "add", "path": "/list/1", "value": 1}]),
                "no index of the list",
            ),
            (
                json!([{"op": "add", "path": "/list/00", "value": 1}]),
                "no index of the list",
            ),
            (
                json!([{"op": "test", "path": "/name", "value": "n"}]),
                "another value",
            ),
        ] {
            let refused = applied(before.clone(), patch.clone()).unwrap_err();
            assert!(refused.contains(reason), "{patch}: {refused}");
        }
    }

    #[test]
    fn malformed_patches_are_refused() {
        let operation = json!({"op": "remove", "path": "/name"});
        for patch in [
            Value::Null,
            json!({"op": "remove", "path": "/name"}),
            json!(["remove"]),
            json!([{"op": "move", "path": "/name", "from": "/extra"}]),
            json!([{"op": "remove"}]),
            json!([{"op": "remove", "path": "name"}]),
            json!([{"op": "add", "path": "/name"}]),
            Value::Array(vec![operation.clone(); OPERATIONS_MAX + 1]),
        ] {
            assert!(JsonPatch::parse(&patch).is_err(), "{patch}");
        }
        let longest = Value::Array(vec![operation; OPERATIONS_MAX]);
        assert!(JsonPatch::parse(&longest).is_ok());
    }

    #[test]
    fn fields_that_a_patch_touches() {
        let patch = JsonPatch::parse(&json!([
            {"op": "add", "path": "/extra/a", "value": 1},
            {"op": "add", "path": "/owner", "value": "x"},
            {"op": "replace", "path": "/owner", "value": "y"},
            {"op": "remove", "path": "/owner"},
        ]))
        .unwrap();
        assert_eq!(patch.roots(), BTreeSet::from(["extra", "owner"]));
        assert_eq!(patch.value_of("owner"), Some(&json!("y")));
        assert_eq!(patch.value_of("extra"), None);
        assert!(patch.check_roots(&["owner", "extra"]).is_ok());
        let refused = patch.check_roots(&["owner"]).unwrap_err();
        assert_eq!(
            refused.text,
            "Cannot patch /extra/a. Only the following can be updated: owner"
        );
        assert!(!patch.only_removes("owner"));
        let removal = json!([{"op": "remove", "path": "/owner"}]);
        assert!(JsonPatch::parse(&removal).unwrap().only_removes("owner"));
    }

    #[test]
    fn values_are_in_no_debug_text() {
        let patch = json!([{"op": "add", "path": "/driver_info/password", "value": "s3cret"}]);
        let text = format!("{:?}", JsonPatch::parse(&patch).unwrap());
        assert!(
            text.contains("password") && !text.contains("s3cret"),
            "{text}"
        );
    }
}
