//! The left side of a comparison.

use crate::attribute::{CallerAttribute, ObjectAttribute, known_names};
use crate::match_value::{DecisionFacts, MatchValue};

/// A value of the caller, or a constant, that a check compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ComparedValue {
    Caller(CallerAttribute),
    /// Any of the roles, as the token spells them.
    Roles,
    /// Any of the roles of the service that passes the call on.
    ServiceRoles,
    /// A constant: `'Member'`, `True`, `12`.
    Text(Box<str>),
    /// The constant `None`, which equals nothing.
    Nothing,
}

/// A kind of check that is not known: problem and remedy.
#[derive(Debug)]
pub(super) struct UnknownKind {
    pub(super) problem: String,
    pub(super) remedy: String,
}

impl ComparedValue {
    /// Reads the kind of a check.
    pub(super) fn of_kind(kind: &str) -> Result<Self, UnknownKind> {
        match kind {
            "roles" => return Ok(Self::Roles),
            "service_roles" => return Ok(Self::ServiceRoles),
            "None" => return Ok(Self::Nothing),
            "True" | "False" => return Ok(Self::Text(kind.into())),
            _ => {}
        }
        if let Ok(attribute) = kind.parse::<CallerAttribute>() {
            return Ok(Self::Caller(attribute));
        }
        if is_integer(kind) {
            return Ok(Self::Text(kind.into()));
        }
        if kind.starts_with(['"', '\'']) {
            return quoted(kind);
        }
        Err(unknown(kind))
    }

    /// `true` if the value is the one on the right side.
    pub(super) fn is(&self, right: &MatchValue, facts: DecisionFacts<'_>) -> bool {
        let equals = |text: &str| right.equals(text, facts, false);
        match self {
            Self::Caller(attribute) => match facts.credentials.get(*attribute) {
                Some(text) => equals(text),
                // Only the constant asks for absence: two absent values are never equal.
                None => *right == MatchValue::Absent,
            },
            Self::Roles => facts.credentials.roles().any(equals),
            Self::ServiceRoles => facts.credentials.service_roles().any(equals),
            Self::Text(text) => equals(text),
            Self::Nothing => false,
        }
    }
}

/// A whole number as Python prints it.
fn is_integer(kind: &str) -> bool {
    let digits = kind.strip_prefix('-').unwrap_or(kind);
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number && (kind == "0" || !digits.starts_with('0'))
}

fn quoted(kind: &str) -> Result<ComparedValue, UnknownKind> {
    let inner = ['"', '\''].into_iter().find_map(|quote| {
        let inner = kind.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains([quote, '\\'])).then_some(inner)
    });
    match inner {
        Some(text) => Ok(ComparedValue::Text(text.into())),
        None => Err(UnknownKind {
            problem: format!("{kind} is no text: its quote is not closed, or it has an escape"),
            remedy: "write 'TEXT' without quotes, colons, white space and backslashes inside"
                .to_owned(),
        }),
    }
}

fn unknown(kind: &str) -> UnknownKind {
    let problem = format!("{kind:?} is no known kind of check");
    let lower = kind.to_lowercase();
    let remedy = if lower == "role" || lower == "rule" {
        format!("write {lower}, in lower case")
    } else if lower == "http" || lower == "https" {
        "a decision asks no other server; write the condition itself".to_owned()
    } else if kind == "tenant" || kind == "tenant_id" {
        "write project_id".to_owned()
    } else if kind.parse::<ObjectAttribute>().is_ok() {
        format!("attributes of objects stand behind the colon: project_id:%({kind})s")
    } else {
        format!("use rule, role, a constant, or one of {}", known_names())
    };
    UnknownKind { problem, remedy }
}

#[cfg(test)]
mod tests {
    use super::ComparedValue::{self, Caller, Nothing, Roles, Text};
    use crate::attribute::CallerAttribute;

    #[test]
    fn kinds() {
        for (kind, expected) in [
            ("project_id", Caller(CallerAttribute::ProjectId)),
            ("system", Caller(CallerAttribute::SystemScope)),
            ("roles", Roles),
            ("None", Nothing),
            ("True", Text("True".into())),
            ("'Member'", Text("Member".into())),
            ("\"Member\"", Text("Member".into())),
            ("12", Text("12".into())),
            ("-1", Text("-1".into())),
            ("0", Text("0".into())),
        ] {
            assert_eq!(ComparedValue::of_kind(kind).unwrap(), expected, "{kind}");
        }
        for (kind, remedy) in [
            ("ROLE", "write role, in lower case"),
            ("https", "asks no other server"),
            ("tenant", "write project_id"),
            ("node.owner", "project_id:%(node.owner)s"),
            ("field", "is_public_api"),
            ("token.project.id", "use rule, role, a constant"),
            ("'x", "without quotes"),
            ("'a\\n'", "backslashes"),
            ("'a'b'", "without quotes"),
            ("012", "use rule"),
            ("-0", "use rule"),
            ("1.5", "use rule"),
            ("none", "use rule"),
        ] {
            let fault = ComparedValue::of_kind(kind).unwrap_err();
            assert!(fault.remedy.contains(remedy), "{kind}: {}", fault.remedy);
        }
    }
}
