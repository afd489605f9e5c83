//! The mapping of a policy file, before its check strings are parsed.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::RULES_MAX;
use super::raw_check::RawCheck;

/// Names and check strings in the order of the file, doubles included.
#[derive(Debug, Default)]
pub(super) struct RawRules(pub(super) Vec<(String, RawCheck)>);

impl<'de> Deserialize<'de> for RawRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RulesVisitor;

        impl<'de> Visitor<'de> for RulesVisitor {
            type Value = RawRules;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of names to check strings")
            }

            // A file of comments alone.
            fn visit_none<E: Error>(self) -> Result<RawRules, E> {
                Ok(RawRules::default())
            }

            fn visit_unit<E: Error>(self) -> Result<RawRules, E> {
                Ok(RawRules::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawRules, A::Error> {
                let mut rules = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if rules.len() == RULES_MAX {
                        return Err(A::Error::custom(format_args!(
                            "it has more than {RULES_MAX} rules"
                        )));
                    }
                    rules.push((name, map.next_value()?));
                }
                Ok(RawRules(rules))
            }
        }

        deserializer.deserialize_any(RulesVisitor)
    }
}
