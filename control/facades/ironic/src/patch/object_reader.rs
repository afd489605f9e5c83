//! The typed fields of an object of a request.

use control_state::JsonFields;
use proto_types::ProjectId;
use serde_json::Value;
use uuid::Uuid;

use super::fields_of;
use crate::error::IronicError;
use crate::listing::flag;

/// Longest text of a field, bytes; a longer one is refused, as the state does.
const TEXT_BYTES_MAX: usize = 1024;
/// The value of a field that is not there.
static ABSENT: Value = Value::Null;

/// Reads the fields of an object, and refuses values of another type. A field that is absent or `null`
/// is unset.
#[derive(Clone, Copy)]
pub(crate) struct ObjectReader<'a> {
    object: &'a Value,
}

impl<'a> ObjectReader<'a> {
    /// Reads this object.
    pub(crate) const fn new(object: &'a Value) -> Self {
        Self { object }
    }

    /// Refuses a value that is no object, and fields other than these.
    ///
    /// # Errors
    /// 400, which names the field.
    pub(crate) fn check_known(self, known: &[&str]) -> Result<(), IronicError> {
        let Value::Object(fields) = self.object else {
            return Err(IronicError::invalid("the body must be a JSON object"));
        };
        let other = fields.keys().find(|name| !known.contains(&name.as_str()));
        let Some(other) = other else {
            return Ok(());
        };
        Err(IronicError::invalid(format!(
            "Additional properties are not allowed ('{other}' was unexpected)"
        )))
    }

    /// The value of a field; `Null` if it is unset.
    pub(crate) fn value(self, name: &str) -> &'a Value {
        self.object.get(name).unwrap_or(&ABSENT)
    }

    /// A text. `None` means that it is unset.
    ///
    /// # Errors
    /// 400 for another value, and for a text of more than 1024 bytes.
    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, IronicError> {
        match self.value(name) {
            Value::Null => Ok(None),
            Value::String(text) if text.len() <= TEXT_BYTES_MAX => Ok(Some(text)),
            Value::String(_) => {
                let text = format!("{name}: must have at most {TEXT_BYTES_MAX} bytes");
                Err(IronicError::invalid(text))
            }
            _ => Err(wrong(name, "a text")),
        }
    }

    /// A boolean, or a text that stands for one. `None` means that it is unset.
    ///
    /// # Errors
    /// 400 for another value.
    pub(crate) fn flag(self, name: &str) -> Result<Option<bool>, IronicError> {
        match self.value(name) {
            Value::Null => Ok(None),
            Value::Bool(value) => Ok(Some(*value)),
            Value::String(text) => flag(name, text).map(Some),
            _ => Err(wrong(name, "a boolean")),
        }
    }

    /// A UUID. `None` means that it is unset.
    ///
    /// # Errors
    /// 400 for another value.
    pub(crate) fn uuid(self, name: &str) -> Result<Option<Uuid>, IronicError> {
        let text = self.text(name)?;
        let parsed = text.map(|text| Uuid::parse_str(text).map_err(|_| wrong(name, "a UUID")));
        parsed.transpose()
    }

    /// The id of a project, with or without dashes. `None` means that it is unset or empty. A number is
    /// taken for its digits: clients send an id that has no letters as one.
    ///
    /// # Errors
    /// 400 for another value.
    pub(crate) fn project(self, name: &str) -> Result<Option<ProjectId>, IronicError> {
        let number = match self.value(name) {
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let text = match &number {
            Some(number) => number.as_str(),
            None => self.text(name)?.unwrap_or_default(),
        };
        if text.is_empty() {
            return Ok(None);
        }
        let rule = "the id of a project, a UUID";
        text.parse().map(Some).map_err(|_| wrong(name, rule))
    }

    /// An object of free form, as it is stored.
    ///
    /// # Errors
    /// As [`fields_of`].
    pub(crate) fn fields(self, name: &str) -> Result<JsonFields, IronicError> {
        fields_of(name, self.value(name))
    }
}

fn wrong(name: &str, wanted: &str) -> IronicError {
    IronicError::invalid(format!("{name}: must be {wanted}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";

    #[test]
    fn texts_and_booleans() {
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        let object = json!({"a": "x", "b": true, "c": "False", "d": 1, "e": null, "long": long});
        let reader = ObjectReader::new(&object);
        for (name, text) in [
            ("a", Ok(Some("x"))),
            ("e", Ok(None)),
            ("absent", Ok(None)),
            ("b", Err("b: must be a text")),
            ("long", Err("long: must have at most 1024 bytes")),
        ] {
            let read = reader.text(name).map_err(|error| error.text);
            assert_eq!(read, text.map_err(str::to_owned), "{name}");
        }
        for (name, value) in [
            ("b", Ok(Some(true))),
            ("c", Ok(Some(false))),
            ("e", Ok(None)),
            ("d", Err("d: must be a boolean")),
        ] {
            let read = reader.flag(name).map_err(|error| error.text);
            assert_eq!(read, value.map_err(str::to_owned), "{name}");
        }
    }

    #[test]
    fn ids() {
        let bare = ID.replace('-', "");
        let object = json!({"a": ID, "b": bare, "c": "", "d": "x", "e": 12});
        let reader = ObjectReader::new(&object);
        let id: Uuid = ID.parse().unwrap();
        for (name, uuid, project) in [
            ("a", Some(Some(id)), Some(Some(id))),
            ("b", Some(Some(id)), Some(Some(id))),
            ("c", None, Some(None)),
            ("d", None, None),
            ("e", None, None),
            ("absent", Some(None), Some(None)),
        ] {
            assert_eq!(reader.uuid(name).ok(), uuid, "{name}");
            let read = reader.project(name).ok();
            assert_eq!(read, project.map(|id| id.map(ProjectId::new)), "{name}");
        }
    }

    #[test]
    fn unknown_fields_are_named() {
        let object = json!({"a": 1, "b": 2});
        let reader = ObjectReader::new(&object);
        assert!(reader.check_known(&["a", "b"]).is_ok());
        let refused = reader.check_known(&["a"]).unwrap_err();
        assert!(refused.text.contains("'b' was unexpected"), "{refused:?}");
        assert!(ObjectReader::new(&json!([])).check_known(&[]).is_err());
    }
}
