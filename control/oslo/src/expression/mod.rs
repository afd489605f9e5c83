//! Check strings: the language of oslo.policy, parsed and printed.

mod fault;
mod list;
mod parser;
mod simple;
mod token;

use std::fmt;
use std::str::FromStr;

pub use fault::CheckFault;
pub use parser::{CHECKS_MAX, DEPTH_MAX};
pub use simple::SimpleCheck;
pub use token::CHECK_BYTES_MAX;

/// A check string as a tree.
///
/// Its printed form parses to the same tree. `All` and `Any` have at least two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckExpression {
    /// `@`, and the empty string: everybody.
    Always,
    /// `!`: nobody.
    Never,
    /// `kind:value`.
    Check(SimpleCheck),
    /// `not A`.
    Not(Box<CheckExpression>),
    /// `A and B`.
    All(Vec<CheckExpression>),
    /// `A or B`.
    Any(Vec<CheckExpression>),
}

impl CheckExpression {
    /// Reads the list form of earlier releases: one of the outer lists has to hold, and of it every
    /// check.
    ///
    /// # Errors
    /// A check is malformed, or there are too many.
    pub fn from_list<'a>(
        alternatives: impl IntoIterator<Item = Vec<&'a str>>,
    ) -> Result<Self, CheckFault> {
        list::read(alternatives)
    }

    /// Its checks, in the order of writing.
    #[must_use]
    pub fn checks(&self) -> Vec<&SimpleCheck> {
        match self {
            Self::Always | Self::Never => Vec::new(),
            Self::Check(check) => vec![check],
            Self::Not(inner) => inner.checks(),
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::checks).collect(),
        }
    }

    /// The subexpression at a place, counted from the root in the order of writing (preorder).
    pub(crate) fn nth(&self, place: usize) -> Option<&Self> {
        let mut left = place;
        self.walk_to(&mut left)
    }

    fn walk_to(&self, left: &mut usize) -> Option<&Self> {
        if *left == 0 {
            return Some(self);
        }
        *left -= 1;
        match self {
            Self::Always | Self::Never | Self::Check(_) => None,
            Self::Not(inner) => inner.walk_to(left),
            Self::All(parts) | Self::Any(parts) => parts.iter().find_map(|part| part.walk_to(left)),
        }
    }

    fn is_joined(&self) -> bool {
        matches!(self, Self::All(_) | Self::Any(_))
    }
}

impl FromStr for CheckExpression {
    type Err = CheckFault;

    fn from_str(text: &str) -> Result<Self, CheckFault> {
        parser::parse(text)
    }
}

impl fmt::Display for CheckExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("@"),
            Self::Never => f.write_str("!"),
            Self::Check(check) => fmt::Display::fmt(check, f),
            Self::Not(inner) => {
                f.write_str("not ")?;
                write_part(f, inner, inner.is_joined())
            }
            Self::All(parts) => write_joined(f, parts, " and ", Self::is_joined),
            // `and` binds stronger than `or`: parts of `or` that are `and` need no parentheses.
            Self::Any(parts) => write_joined(f, parts, " or ", |part| matches!(part, Self::Any(_))),
        }
    }
}

fn write_joined(
    f: &mut fmt::Formatter<'_>,
    parts: &[CheckExpression],
    joint: &str,
    needs_parentheses: impl Fn(&CheckExpression) -> bool,
) -> fmt::Result {
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            f.write_str(joint)?;
        }
        write_part(f, part, needs_parentheses(part))?;
    }
    Ok(())
}

fn write_part(
    f: &mut fmt::Formatter<'_>,
    part: &CheckExpression,
    in_parentheses: bool,
) -> fmt::Result {
    if in_parentheses {
        write!(f, "({part})")
    } else {
        fmt::Display::fmt(part, f)
    }
}
