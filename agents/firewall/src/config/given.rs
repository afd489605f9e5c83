use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_norway::Value;

/// Reads a list of objects. A field without a value is refused: its objects were forgotten, and without
/// the operator's rules and limits more would pass.
pub(super) fn given_list<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Value>, D::Error> {
    input.deserialize_any(GivenList)
}

/// Reads an object. One without a value is kept as such, so that it is refused like a wrong one.
pub(super) fn given_object<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(input).map(Some)
}

struct GivenList;

impl<'de> Visitor<'de> for GivenList {
    type Value = Vec<Value>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<Value>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<Value>, E> {
        Err(E::custom("it has no value; give it one, or remove it"))
    }
}
