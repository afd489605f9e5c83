//! One check: a kind, a colon and a value.

use std::fmt;

use super::CheckFault;

/// A check without `and`, `or` and `not`: `role:admin`, `project_id:%(node.owner)s`.
///
/// Both parts are as written. Neither is empty nor has white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCheck {
    kind: Box<str>,
    value: Box<str>,
}

impl SimpleCheck {
    /// The part before the first colon.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The part behind the first colon.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Name of the rule, if the check refers to one.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        (self.kind() == "rule").then(|| self.value())
    }

    /// Reads a word of a check string that begins at a character.
    pub(super) fn parse(word: &str, at: usize) -> Result<Self, CheckFault> {
        let quote = word
            .chars()
            .next()
            .filter(|first| matches!(first, '"' | '\''));
        if let Some(quote) = quote
            && word.len() > 1
            && word.ends_with(quote)
        {
            return Err(CheckFault::at(
                at,
                format!("{word} is text in quotes, which permits nobody"),
                "write a check without quotes around it, such as role:admin",
            ));
        }
        let Some((kind, value)) = word.split_once(':') else {
            return Err(CheckFault::at(
                at,
                format!("{word:?} is no check: it has no colon"),
                "write kind:value, such as role:admin or rule:is_admin",
            ));
        };
        if kind.is_empty() || value.is_empty() {
            return Err(CheckFault::at(
                at,
                format!("{word:?} has nothing on one side of its colon"),
                "write kind:value, such as role:admin or rule:is_admin",
            ));
        }
        Ok(Self {
            kind: kind.into(),
            value: value.into(),
        })
    }
}

impl fmt::Display for SimpleCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.value)
    }
}
