//! The types of values, and how each is written.

use std::collections::HashMap;

use prost_reflect::{EnumDescriptor, Kind};

/// Integers and booleans, all of which are varints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Bool,
    I32,
    U32,
    I64,
    U64,
}

impl Number {
    /// JSON writes them as text: its numbers have 53 bits.
    pub(super) const fn is_long(self) -> bool {
        matches!(self, Self::I64 | Self::U64)
    }

    pub(super) fn of(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Bool => Some(Self::Bool),
            Kind::Int32 => Some(Self::I32),
            Kind::Uint32 => Some(Self::U32),
            Kind::Int64 => Some(Self::I64),
            Kind::Uint64 => Some(Self::U64),
            _ => None,
        }
    }
}

/// Names of an enum's values, in quotes, in the order of numbers.
#[derive(Debug)]
pub(super) struct Names(Vec<(i32, Vec<u8>)>);

impl Names {
    fn of(of: &EnumDescriptor) -> Self {
        let mut names: Vec<_> = of
            .values()
            .map(|value| (value.number(), format!("\"{}\"", value.name()).into_bytes()))
            .collect();
        // Of several names of a number the first counts.
        names.sort_by_key(|(number, _)| *number);
        names.dedup_by_key(|(number, _)| *number);
        Self(names)
    }

    pub(super) fn get(&self, number: i32) -> Option<&[u8]> {
        let at = self
            .0
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()?;
        self.0.get(at).map(|(_, name)| name.as_slice())
    }
}

/// The type of a value.
#[derive(Debug)]
pub(super) enum Form {
    Text,
    Number(Number),
    Enum(Names),
    /// A message by its place among the plans.
    Message(usize),
    Timestamp,
    Duration,
    /// Types that only the reflection path writes.
    Other,
}

impl Form {
    /// `true` if it has 32 bits.
    pub(super) const fn is_short(&self) -> bool {
        matches!(
            self,
            Self::Enum(_) | Self::Number(Number::I32 | Number::U32)
        )
    }

    /// `true` if it is a varint.
    pub(super) const fn is_number(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Enum(_))
    }
}

/// The type of a value. `places` holds the position of each message's plan by its full name.
pub(super) fn form(kind: &Kind, places: &HashMap<String, usize>) -> Form {
    match kind {
        Kind::String => Form::Text,
        Kind::Enum(of) if of.full_name() != "google.protobuf.NullValue" => {
            Form::Enum(Names::of(of))
        }
        Kind::Message(of) => match of.full_name() {
            "google.protobuf.Timestamp" => Form::Timestamp,
            "google.protobuf.Duration" => Form::Duration,
            name => places
                .get(name)
                .map_or(Form::Other, |place| Form::Message(*place)),
        },
        kind => Number::of(kind).map_or(Form::Other, Form::Number),
    }
}
