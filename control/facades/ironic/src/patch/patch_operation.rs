//! One operation of a JSON Patch.

use serde_json::Value;

use super::json_path;
use crate::error::IronicError;

/// The verb of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchVerb {
    /// Sets a field, or puts an element into a list.
    Add,
    /// Sets a field or an element that is there.
    Replace,
    /// Removes a field or an element that is there.
    Remove,
    /// Refuses the patch if the value is another one.
    Test,
}

/// An operation.
pub(super) struct PatchOperation {
    /// The verb.
    pub(super) verb: PatchVerb,
    /// The parts of its path; at least one.
    pub(super) path: Vec<String>,
    /// The value; `Null` for the verb that needs none.
    pub(super) value: Value,
}

/// The value may be a secret, and stays out.
impl std::fmt::Debug for PatchOperation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.verb, self.path)
    }
}

impl PatchVerb {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "add" => Self::Add,
            "replace" => Self::Replace,
            "remove" => Self::Remove,
            "test" => Self::Test,
            _ => return None,
        })
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Remove => "remove",
            Self::Test => "test",
        }
    }
}

impl PatchOperation {
    /// An operation of a request.
    ///
    /// # Errors
    /// 400 for a malformed one.
    pub(super) fn parse(operation: &Value) -> Result<Self, IronicError> {
        let text = |name: &str| operation.get(name).and_then(Value::as_str);
        let verb = text("op").and_then(PatchVerb::parse).ok_or_else(|| {
            let text = "op of a patch's operation: must be add, replace, remove or test";
            IronicError::invalid(text)
        })?;
        let path = text("path").ok_or_else(|| {
            let text = "path of a patch's operation: must be a text such as /extra/name";
            IronicError::invalid(text)
        })?;
        let value = operation.get("value");
        if value.is_none() && verb != PatchVerb::Remove {
            let verb = verb.as_str();
            let text = format!("value of a patch's operation: {verb} {path} must have one");
            return Err(IronicError::invalid(text));
        }
        Ok(Self {
            verb,
            path: json_path::parse(path)?,
            value: value.cloned().unwrap_or_default(),
        })
    }

    /// The first part of its path.
    pub(super) fn root(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// Changes an object.
    ///
    /// # Errors
    /// 400 if the object does not have what the path names.
    pub(super) fn apply(&self, object: &mut Value) -> Result<(), IronicError> {
        self.applied(object).map_err(|reason| {
            let (verb, path) = (self.verb.as_str(), json_path::text(&self.path));
            IronicError::invalid(format!(
                "Couldn't apply patch '{{'op': '{verb}', 'path': '{path}'}}'. Reason: {reason}"
            ))
        })
    }

    fn applied(&self, object: &mut Value) -> Result<(), String> {
        let Some((last, parents)) = self.path.split_last() else {
            return Err("it names no field".to_owned());
        };
        let mut at = object;
        for part in parents {
            at = child(at, part).ok_or_else(|| format!("member '{part}' not found"))?;
        }
        match self.verb {
            PatchVerb::Add => self.add(at, last),
            PatchVerb::Remove => remove(at, last),
            PatchVerb::Replace => {
                let found = child(at, last);
                let found =
                    found.ok_or_else(|| format!("can't replace a non-existent object '{last}'"))?;
                *found = self.value.clone();
                Ok(())
            }
            PatchVerb::Test => match child(at, last) {
                Some(found) if *found == self.value => Ok(()),
                _ => Err(format!("'{last}' has another value than the test expects")),
            },
        }
    }

    fn add(&self, parent: &mut Value, last: &str) -> Result<(), String> {
        match parent {
            Value::Object(fields) => {
                fields.insert(last.to_owned(), self.value.clone());
                Ok(())
            }
            Value::Array(items) => {
                let at = match last {
                    "-" => items.len(),
                    last => index(last).ok_or_else(|| no_element(last))?,
                };
                if at > items.len() {
                    return Err(no_element(last));
                }
                items.insert(at, self.value.clone());
                Ok(())
            }
            _ => Err(format!("'{last}' would be a part of a plain value")),
        }
    }
}

fn remove(parent: &mut Value, last: &str) -> Result<(), String> {
    let absent = || format!("can't remove a non-existent object '{last}'");
    match parent {
        Value::Object(fields) => fields.remove(last).map(drop).ok_or_else(absent),
        Value::Array(items) => {
            let at = index(last).filter(|&at| at < items.len());
            items.remove(at.ok_or_else(absent)?);
            Ok(())
        }
        _ => Err(absent()),
    }
}

/// The field or element of this name. `None` if there is none.
fn child<'v>(value: &'v mut Value, part: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(fields) => fields.get_mut(part),
        Value::Array(items) => items.get_mut(index(part)?),
        _ => None,
    }
}

/// The index that a part stands for. `None` for other texts, and for leading zeros.
fn index(part: &str) -> Option<usize> {
    let is_number = part.bytes().all(|sign| sign.is_ascii_digit());
    let is_plain = part == "0" || !part.starts_with('0');
    part.parse().ok().filter(|_| is_number && is_plain)
}

fn no_element(part: &str) -> String {
    format!("'{part}' is no index of the list")
}
