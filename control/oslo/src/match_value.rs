//! The right side of a check, with its attributes resolved: compared without being formatted.

use crate::attribute::{CallerAttribute, ObjectAttribute};
use crate::credentials::Credentials;
use crate::target::PolicyTarget;
use crate::template::{ValuePart, parts};

/// A value that a check compares with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MatchValue {
    /// Constant text.
    Text(Box<str>),
    /// The constant `None`, by which a check asks for an attribute that is absent.
    Absent,
    Caller(CallerAttribute),
    Object(ObjectAttribute),
    /// An attribute that no target has: equals nothing.
    Unknown,
    /// Texts and attributes, one after the other.
    Joined(Box<[MatchValue]>),
}

/// The caller and the object of one decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecisionFacts<'a> {
    pub(crate) credentials: &'a Credentials,
    pub(crate) target: &'a PolicyTarget<'a>,
}

impl MatchValue {
    /// Resolves the value of a check; `on_unknown` is told attributes that do not exist.
    ///
    /// # Errors
    /// The part of the value that is no place for an attribute.
    pub(crate) fn resolve<'a>(
        value: &'a str,
        mut on_unknown: impl FnMut(&'a str),
    ) -> Result<Self, &'a str> {
        if value == "None" {
            return Ok(Self::Absent);
        }
        let mut resolved: Vec<Self> = Vec::new();
        for part in parts(value)? {
            resolved.push(match part {
                ValuePart::Text(text) => Self::Text(text.into()),
                ValuePart::Attribute(name) => Self::attribute(name).unwrap_or_else(|| {
                    on_unknown(name);
                    Self::Unknown
                }),
            });
        }
        Ok(match <[Self; 1]>::try_from(resolved) {
            Ok([only]) => only,
            Err(several) => Self::Joined(several.into()),
        })
    }

    fn attribute(name: &str) -> Option<Self> {
        let object = name.parse::<ObjectAttribute>().map(Self::Object);
        object
            .or_else(|_| name.parse::<CallerAttribute>().map(Self::Caller))
            .ok()
    }

    /// The same value for comparisons with text in lower case.
    pub(crate) fn folded(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(text.to_lowercase().into()),
            // A role may be called None.
            Self::Absent => Self::Text("none".into()),
            Self::Joined(parts) => Self::Joined(parts.into_iter().map(Self::folded).collect()),
            known @ (Self::Caller(_) | Self::Object(_) | Self::Unknown) => known,
        }
    }

    /// `true` if the value is this text.
    pub(crate) fn equals(&self, text: &str, facts: DecisionFacts<'_>, ignores_case: bool) -> bool {
        let rest = match self {
            Self::Joined(parts) => parts
                .iter()
                .try_fold(text, |rest, part| part.strip(rest, facts, ignores_case)),
            single => single.strip(text, facts, ignores_case),
        };
        rest == Some("")
    }

    /// The text behind this value at its beginning. `None` means that it begins otherwise.
    fn strip<'t>(
        &self,
        text: &'t str,
        facts: DecisionFacts<'_>,
        ignores_case: bool,
    ) -> Option<&'t str> {
        let own = match self {
            Self::Text(own) => &**own,
            Self::Caller(attribute) => facts.credentials.get(*attribute)?,
            Self::Object(attribute) => facts.target.get(*attribute)?,
            Self::Absent | Self::Unknown | Self::Joined(_) => return None,
        };
        if !ignores_case {
            return text.strip_prefix(own);
        }
        let (begin, behind) = text.split_at_checked(own.len())?;
        begin.eq_ignore_ascii_case(own).then_some(behind)
    }
}
