//! The value of a rule in a policy file: a text, or the list form of earlier releases.

use std::fmt;

use serde::de::{Deserialize, Deserializer, EnumAccess, Error, SeqAccess, Visitor};

use crate::expression::CHECKS_MAX;

/// A check string as the file has it.
#[derive(Debug)]
pub(super) enum RawCheck {
    Text(String),
    /// Alternatives, of each all checks.
    List(Vec<Vec<String>>),
}

/// A part of the list form: one check, or a list of them.
struct RawAlternative(Vec<String>);

/// YAML reads an unquoted `!` as a tag, and oslo.policy then as the empty text: everybody.
fn unquoted<E: Error>() -> E {
    E::custom("an unquoted ! is a tag of YAML, and no check; write \"!\" with its quotes")
}

impl<'de> Deserialize<'de> for RawCheck {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CheckVisitor;

        impl<'de> Visitor<'de> for CheckVisitor {
            type Value = RawCheck;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a check string: \"@\" for everybody, \"!\" for nobody")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RawCheck, E> {
                Ok(RawCheck::Text(text.to_owned()))
            }

            fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<RawCheck, A::Error> {
                Err(unquoted())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawCheck, A::Error> {
                let mut alternatives = Vec::new();
                while let Some(RawAlternative(checks)) = list.next_element()? {
                    if alternatives.len() == CHECKS_MAX {
                        return Err(A::Error::custom(format_args!(
                            "its list has more than {CHECKS_MAX} parts"
                        )));
                    }
                    alternatives.push(checks);
                }
                Ok(RawCheck::List(alternatives))
            }
        }

        deserializer.deserialize_any(CheckVisitor)
    }
}

impl<'de> Deserialize<'de> for RawAlternative {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AlternativeVisitor;

        impl<'de> Visitor<'de> for AlternativeVisitor {
            type Value = RawAlternative;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a check or a list of checks")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RawAlternative, E> {
                Ok(RawAlternative(vec![text.to_owned()]))
            }

            fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<RawAlternative, A::Error> {
                Err(unquoted())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawAlternative, A::Error> {
                let mut checks = Vec::new();
                while let Some(check) = list.next_element::<String>()? {
                    if checks.len() == CHECKS_MAX {
                        return Err(A::Error::custom(format_args!(
                            "its list has more than {CHECKS_MAX} checks"
                        )));
                    }
                    checks.push(check);
                }
                Ok(RawAlternative(checks))
            }
        }

        deserializer.deserialize_any(AlternativeVisitor)
    }
}
