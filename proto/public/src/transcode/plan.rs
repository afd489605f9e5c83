//! How each message of the contract is written, made once.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, Syntax};

pub(super) static PLANS: LazyLock<Plans> = LazyLock::new(Plans::make);

/// Whole numbers and truth, all of which are varints.
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

    fn of(kind: &Kind) -> Option<Self> {
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

/// The type of a map's key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    Text,
    Number(Number),
}

/// How often a field comes, and when it is left out.
#[derive(Debug)]
pub(super) enum Shape {
    /// Left out when it is 0 or empty.
    Implicit,
    /// Written when it is there.
    Explicit,
    List,
    Map(Key),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// The name in JSON, quoted, with its colon.
    pub(super) name: Vec<u8>,
    pub(super) shape: Shape,
    /// Of the value, or of each value.
    pub(super) form: Form,
    /// Place of the choice that it belongs to.
    pub(super) oneof: Option<u32>,
}

/// A message's fields in the order of numbers.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Plans {
    places: HashMap<String, usize>,
    plans: Vec<Plan>,
}

impl Plans {
    pub(super) fn of(&self, full_name: &str) -> Option<&Plan> {
        self.at(*self.places.get(full_name)?)
    }

    pub(super) fn at(&self, place: usize) -> Option<&Plan> {
        self.plans.get(place)
    }

    fn make() -> Self {
        let ours = |message: &MessageDescriptor| {
            message.parent_file().syntax() == Syntax::Proto3
                && (message.full_name().starts_with("metalstack.")
                    || message.full_name().starts_with("metalmesh."))
        };
        let messages: Vec<_> = crate::pool().all_messages().filter(ours).collect();
        let places: HashMap<_, _> = messages
            .iter()
            .enumerate()
            .map(|(place, message)| (message.full_name().to_owned(), place))
            .collect();
        let plan = |message: &MessageDescriptor| {
            let mut fields: Vec<_> = message
                .fields()
                .map(|field_of| field(&field_of, &places))
                .collect();
            fields.sort_by_key(|field| field.number);
            Plan { fields }
        };
        let plans = messages.iter().map(plan).collect();
        Self { places, plans }
    }
}

fn field(of: &FieldDescriptor, places: &HashMap<String, usize>) -> Field {
    let kind = of.kind();
    let map = kind.as_message().filter(|_| of.is_map());
    let shape = if let Some(entry) = map {
        match Number::of(&entry.map_entry_key_field().kind()) {
            Some(number) => Shape::Map(Key::Number(number)),
            None => Shape::Map(Key::Text),
        }
    } else if of.is_list() {
        Shape::List
    } else if of.supports_presence() {
        Shape::Explicit
    } else {
        Shape::Implicit
    };
    let value = map.map(|entry| entry.map_entry_value_field().kind());
    // The choice of one field is how `optional` is described; it excludes nothing.
    let choice = of
        .containing_oneof()
        .filter(|oneof| oneof.fields().len() > 1);
    let place = choice.and_then(|choice| {
        let mut all = of.parent_message().oneofs();
        u32::try_from(all.position(|oneof| oneof == choice)?).ok()
    });
    Field {
        number: of.number(),
        name: format!("\"{}\":", of.json_name()).into_bytes(),
        shape,
        form: form(value.as_ref().unwrap_or(&kind), places),
        oneof: place,
    }
}

fn form(kind: &Kind, places: &HashMap<String, usize>) -> Form {
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
