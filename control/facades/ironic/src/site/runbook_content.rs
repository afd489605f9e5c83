//! The fields of runbooks that requests write, and the rules about them.

use control_state::JsonFields;
use proto_types::{ProjectId, TraitName};
use serde_json::Value;

use super::documents::{put, put_description, put_extra};
use super::steps::runbook_steps;
use crate::error::IronicError;
use crate::patch::{JsonPatch, ObjectReader, is_logical_name};
use crate::version::ApiVersion;

/// Microversion from which runbooks have any name, a description, and traits apart from their name.
const FREE_NAMES: u16 = 112;
/// Most traits of a runbook.
const TRAITS_MAX: usize = 50;

/// The owner of a new runbook, and `true` if every project may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunbookReach {
    /// The project. `None` means the site.
    pub(super) owner: Option<ProjectId>,
    /// `true` if every project may use it.
    pub(super) public: bool,
}

/// The reach of a new runbook. `project` is that of the caller, `None` for the site.
///
/// # Errors
/// 400 for a project that makes a public runbook, or one of another project.
pub(super) fn reach(
    reader: ObjectReader<'_>,
    project: Option<ProjectId>,
) -> Result<RunbookReach, IronicError> {
    let owner = reader.project("owner")?;
    let public = reader.flag("public")?.unwrap_or(false);
    let Some(project) = project else {
        if public && owner.is_some() {
            return Err(owned_and_public());
        }
        return Ok(RunbookReach { owner, public });
    };
    if owner.is_some_and(|owner| owner != project) {
        let text = "Cannot create a runbook as a project scoped admin with an owner other than \
                    your own project.";
        return Err(IronicError::invalid(text));
    }
    if public {
        let text = "Cannot create a public runbook as a project scoped admin.";
        return Err(IronicError::invalid(text));
    }
    Ok(RunbookReach {
        owner: Some(project),
        public,
    })
}

/// Applies a patch to the object of a runbook. A change of `public` takes its owner away, unless the
/// patch names one.
///
/// # Errors
/// 400 for an owner of a public runbook, and for a patch that does not fit.
pub(super) fn patched(patch: &JsonPatch, mut object: Value) -> Result<Value, IronicError> {
    if patch.value_of("public").is_some() {
        object["owner"] = Value::Null;
    }
    patch.apply(&mut object)?;
    let reader = ObjectReader::new(&object);
    if reader.flag("public")?.unwrap_or(false) && reader.project("owner")?.is_some() {
        return Err(owned_and_public());
    }
    Ok(object)
}

/// The name of a runbook: in older microversions that of a trait.
pub(super) fn name(reader: ObjectReader<'_>, is_free: bool) -> Result<String, IronicError> {
    let name = reader.text("name")?.unwrap_or_default();
    if is_free && is_logical_name(name) {
        return Ok(name.to_owned());
    }
    if is_free {
        let text = "name: must be 1 to 255 letters, digits, '-', '.', '_' and '~', and no UUID";
        return Err(IronicError::invalid(text));
    }
    trait_name(name)
}

/// `true` if this microversion has free names.
pub(super) fn has_free_names(version: ApiVersion) -> bool {
    version.has(FREE_NAMES)
}

/// A trait.
///
/// # Errors
/// 400 for another text.
pub(super) fn trait_name(text: &str) -> Result<String, IronicError> {
    let parsed = text.parse::<TraitName>();
    let parsed = parsed.map_err(|error| IronicError::invalid(error.to_string()))?;
    Ok(parsed.as_str().to_owned())
}

/// The traits of a request, sorted, each once.
///
/// # Errors
/// 400 for a value that is no list of traits, and for too many.
pub(super) fn traits(value: &Value) -> Result<Vec<String>, IronicError> {
    let list = value.as_array();
    let list = list.ok_or_else(|| IronicError::invalid("traits: must be a list of traits"))?;
    let mut traits = Vec::new();
    for entry in list {
        traits.push(trait_name(entry.as_str().unwrap_or_default())?);
    }
    bounded(traits)
}

/// Sorted traits without repetitions.
///
/// # Errors
/// 400 for too many.
pub(super) fn bounded(mut traits: Vec<String>) -> Result<Vec<String>, IronicError> {
    traits.sort();
    traits.dedup();
    if traits.len() > TRAITS_MAX {
        let text = format!("traits: a runbook has at most {TRAITS_MAX}");
        return Err(IronicError::invalid(text));
    }
    Ok(traits)
}

/// The fields to store. `traits` are those that it keeps.
///
/// # Errors
/// 400 for fields that are malformed.
pub(super) fn content(reader: ObjectReader<'_>, traits: &Value) -> Result<JsonFields, IronicError> {
    let mut fields = JsonFields::new();
    put_description(&mut fields, reader)?;
    put_extra(&mut fields, reader)?;
    put(&mut fields, "steps", &runbook_steps(reader.value("steps"))?)?;
    if let Some(is_without) = reader.flag("disable_ramdisk")? {
        put(&mut fields, "disable_ramdisk", &is_without.into())?;
    }
    put(&mut fields, "traits", traits)?;
    Ok(fields)
}

fn owned_and_public() -> IronicError {
    IronicError::invalid("There cannot be an owner for a public runbook")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OWN: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";
    const OTHER: &str = "f11853c7-fa9c-4db3-a477-c9d8e0dbbf13";

    #[test]
    fn runbooks_of_projects_are_their_own() {
        let own: ProjectId = OWN.parse().unwrap();
        let of = |owner, public| Some(RunbookReach { owner, public });
        for (body, project, expected) in [
            (json!({}), Some(own), of(Some(own), false)),
            (json!({"owner": OWN}), Some(own), of(Some(own), false)),
            (json!({"owner": OTHER}), Some(own), None),
            (json!({"public": true}), Some(own), None),
            (json!({}), None, of(None, false)),
            (json!({"owner": OWN}), None, of(Some(own), false)),
            (json!({"public": true}), None, of(None, true)),
            (json!({"public": true, "owner": OWN}), None, None),
        ] {
            let found = reach(ObjectReader::new(&body), project).ok();
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn public_runbooks_have_no_owner() {
        let owner = json!({"op": "replace", "path": "/owner", "value": OWN});
        let public = |value: bool| json!({"op": "replace", "path": "/public", "value": value});
        for (before, patch, expected) in [
            (false, json!([owner]), Some((json!(OWN), json!(false)))),
            (true, json!([owner]), None),
            (false, json!([owner, public(true)]), None),
            (
                true,
                json!([public(false), owner]),
                Some((json!(OWN), json!(false))),
            ),
            (
                false,
                json!([public(true)]),
                Some((Value::Null, json!(true))),
            ),
        ] {
            let parsed = JsonPatch::parse(&patch).unwrap();
            let object = json!({"owner": OTHER, "public": before});
            let found = patched(&parsed, object).ok();
            let found = found.map(|found| (found["owner"].clone(), found["public"].clone()));
            assert_eq!(found, expected, "{before} {patch}");
        }
    }

    #[test]
    fn names_and_traits_by_microversion() {
        let named = |text: &str, is_free| {
            let body = json!({"name": text});
            name(ObjectReader::new(&body), is_free).is_ok()
        };
        assert!(named("CUSTOM_A", false) && named("CUSTOM_A", true));
        assert!(!named("any-name", false) && named("any-name", true));
        assert!(!named("no name", true) && !named("", true));
        let found = traits(&json!(["CUSTOM_B", "CUSTOM_A", "CUSTOM_B"])).unwrap();
        assert_eq!(found, ["CUSTOM_A", "CUSTOM_B"]);
        assert!(traits(&json!(["lower"])).is_err() && traits(&json!("CUSTOM_A")).is_err());
    }
}
