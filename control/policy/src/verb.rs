//! The sets of rules of a policy, and the rules of a set that fired.

use regorus::Value;
use strum::{IntoStaticStr, VariantArray};

/// Maximum length of a rule's name in a decision, bytes. A longer name fails the evaluation.
const RULE_LEN_MAX: usize = 64;
/// Maximum length of a rule's message, characters. A longer message is cut.
const MESSAGE_LEN_MAX: usize = 512;

/// A set of rules that a policy may define.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Verb {
    /// Refuses calls.
    Deny,
    /// Permits calls of callers that may see the subject.
    Allow,
    /// Permits calls of callers for which the subject does not exist.
    AllowForeign,
}

impl Verb {
    /// Name of the set in Rego.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// A rule that fired, with its message for the caller. An empty message means none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fired {
    pub(crate) rule: String,
    pub(crate) message: String,
}

/// The rules of a set that fired, from the set's value.
///
/// # Errors
/// The value is not a set of rules.
pub(crate) fn fired(verb: Verb, value: &Value) -> Result<Vec<Fired>, String> {
    let items = match value {
        Value::Undefined => return Ok(Vec::new()),
        Value::Set(items) => items,
        _ => return Err(format!("{} is not a set", verb.name())),
    };
    let one = |item: &Value| -> Option<Fired> {
        let (rule, message) = match item {
            Value::String(rule) => (rule.to_string(), String::new()),
            Value::Object(_) => {
                let message = text(&item["message"]).unwrap_or_default();
                (text(&item["rule"])?, message)
            }
            _ => return None,
        };
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let fits = (1..=RULE_LEN_MAX).contains(&rule.len()) && rule.bytes().all(is_allowed);
        // Control characters would let a message forge lines of logs and terminals.
        let message = message.chars().filter(|letter| !letter.is_control());
        fits.then(|| Fired {
            rule,
            message: message.take(MESSAGE_LEN_MAX).collect(),
        })
    };
    let found: Option<Vec<Fired>> = items.iter().map(one).collect();
    let mut found = found.ok_or_else(|| {
        format!(
            "{} has a member that is neither the name of a rule (up to {RULE_LEN_MAX} letters, \
             digits, - _ .) nor an object with rule and message",
            verb.name()
        )
    })?;
    found.sort_unstable();
    Ok(found)
}

/// The text of a value. `None` means that it is not a text.
pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_string().ok().map(|text| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rule_sets_do_not_change() {
        let names: Vec<&str> = Verb::VARIANTS.iter().map(|verb| verb.name()).collect();
        assert_eq!(names, ["deny", "allow", "allow_foreign"]);
    }
}
