//! Finds in a JSON text unknown fields and values of a message, fields that are given twice, and those
//! that are given without a value.
//!
//! The parser ignores these or stops at them without their place. This pass goes before it, reads the
//! text once and stores only the path to where it is. It judges nothing else: other numbers, texts
//! and syntax are the parser's.

mod all_if_absent;
mod walk;

use std::collections::BTreeSet;
use std::fmt;

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use crate::json::field;
use all_if_absent::is_all_if_absent;
use walk::{Printable, Walk};

/// Most fields or values that a refusal lists.
const KNOWN_MAX: usize = 32;
/// Reason for a `null`. The parser would take it for an absent field, which may mean everything.
const NULL: &str = "it has no value; give it one, or remove it";
/// Reason for an empty list of those that mean everything if they are absent.
const EMPTY: &str = "the list is empty; name what the rule is for, or remove the field if it is for \
                     everything";

/// A place in a JSON text that its message cannot take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct RefusedField {
    /// Printable, at most some hundred bytes, such as `content.cwnp.egress[0].too`.
    pub path: String,
    /// The reason, with what the place takes.
    pub reason: String,
}

impl RefusedField {
    /// The first one of a text, in its order. `None` means that there is none before the first error
    /// of syntax.
    pub(crate) fn find(message: &MessageDescriptor, json: &[u8]) -> Option<Self> {
        let mut walk = Walk::default();
        let mut input = serde_json::Deserializer::from_slice(json);
        let shape = Shape::of_message(message.clone());
        let reader = Reader {
            shape,
            walk: &mut walk,
        };
        // Errors of syntax are told by the parser, with line and column.
        let _rest = reader.deserialize(&mut input);
        walk.refused
    }
}

/// The type of a place in the text.
enum Shape {
    Message(MessageDescriptor),
    /// A list of these.
    List {
        kind: Kind,
        /// `true` if it must not be empty.
        is_all_if_absent: bool,
    },
    /// A map with these values.
    Map(Kind),
    Enum(EnumDescriptor),
    /// Anything with a value, which this pass does not judge.
    Other,
    /// Anything at all: a `null` is a value there.
    Any,
}

impl Shape {
    fn of(field: &FieldDescriptor) -> Self {
        let kind = field.kind();
        if field.is_list() {
            return Self::List {
                kind,
                is_all_if_absent: is_all_if_absent(field),
            };
        }
        match kind.as_message() {
            Some(entry) if field.is_map() => Self::Map(entry.map_entry_value_field().kind()),
            _ => Self::of_kind(kind),
        }
    }

    fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Message(message) => Self::of_message(message),
            Kind::Enum(kind) if kind.full_name() == "google.protobuf.NullValue" => Self::Any,
            Kind::Enum(kind) => Self::Enum(kind),
            _ => Self::Other,
        }
    }

    fn of_message(message: MessageDescriptor) -> Self {
        // Times, wrappers and the like have a JSON of their own.
        match message.package_name() {
            "google.protobuf" if message.name() == "Value" => Self::Any,
            "google.protobuf" => Self::Other,
            _ => Self::Message(message),
        }
    }
}

/// Reads one place of the text.
struct Reader<'a> {
    shape: Shape,
    walk: &'a mut Walk,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        match self.shape {
            Shape::Any => input.deserialize_ignored_any(IgnoredAny).map(drop),
            Shape::Other => match Option::<IgnoredAny>::deserialize(input)? {
                Some(_) => Ok(()),
                None => self.walk.refuse(NULL.to_owned()),
            },
            _ => input.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        match i32::try_from(number) {
            Ok(number) => self.visit_i32(number),
            // The parser refuses it, and floats.
            Err(_) => Ok(()),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        i64::try_from(number).map_or(Ok(()), |number| self.visit_i64(number))
    }

    fn visit_i32<E: Error>(self, number: i32) -> Result<(), E> {
        match self.shape {
            // The parser takes any number, which is the default value for who reads it.
            Shape::Enum(kind) if kind.get_value(number).is_none() => {
                let known = listed(kind.values().map(|value| value.name().to_owned()));
                let reason = format!("unknown value {number}; values there are: {known}");
                self.walk.refuse(reason)
            }
            _ => Ok(()),
        }
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        match self.walk.is_at_root() {
            // The parser refuses it.
            true => Ok(()),
            false => self.walk.refuse(NULL.to_owned()),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.shape {
            Shape::Enum(kind) if kind.get_value_by_name(text).is_none() => {
                let known = listed(kind.values().map(|value| value.name().to_owned()));
                let text = Printable(text);
                let reason = format!("unknown value \"{text}\"; values there are: {known}");
                self.walk.refuse(reason)
            }
            _ => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let (kind, is_filled) = match self.shape {
            Shape::List {
                kind,
                is_all_if_absent,
            } => (Some(kind), is_all_if_absent),
            _ => (None, false),
        };
        for index in 0_usize.. {
            let outer = self.walk.enter(format_args!("[{index}]"));
            let reader = Reader {
                shape: kind.clone().map_or(Shape::Other, Shape::of_kind),
                walk: &mut *self.walk,
            };
            let element = elements.next_element_seed(reader)?;
            self.walk.leave(outer);
            if element.is_none() {
                if is_filled && index == 0 {
                    return self.walk.refuse(EMPTY.to_owned());
                }
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self { shape, walk } = self;
        let mut keys = BTreeSet::new();
        let mut numbers = BTreeSet::new();
        while let Some(name) = entries.next_key::<String>()? {
            let (outer, shape, is_again) = match &shape {
                Shape::Message(message) => {
                    let outer = walk.enter_field(&name);
                    let Some(field) = field(message, &name) else {
                        let known = message.fields().map(|field| field.json_name().to_owned());
                        let known = listed(known);
                        return walk.refuse(format!("unknown field; fields there are: {known}"));
                    };
                    let is_again = !numbers.insert(field.number());
                    (outer, Shape::of(&field), is_again)
                }
                Shape::Map(kind) => {
                    let outer = walk.enter(format_args!("[\"{}\"]", Printable(&name)));
                    let is_again = !keys.insert(name);
                    (outer, Shape::of_kind(kind.clone()), is_again)
                }
                Shape::List { .. } | Shape::Enum(_) | Shape::Other | Shape::Any => {
                    (walk.enter(format_args!("")), Shape::Other, false)
                }
            };
            if is_again {
                // The parser would take the last one, which may be wider than the first.
                return walk.refuse("given twice".to_owned());
            }
            let reader = Reader {
                shape,
                walk: &mut *walk,
            };
            entries.next_value_seed(reader)?;
            walk.leave(outer);
        }
        Ok(())
    }
}

/// Names of the contract, up to [`KNOWN_MAX`] of them.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len() > KNOWN_MAX;
    let names: Vec<String> = names.take(KNOWN_MAX).collect();
    match (names.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, true) => names.join(", ") + ", …",
        (false, false) => names.join(", "),
    }
}
