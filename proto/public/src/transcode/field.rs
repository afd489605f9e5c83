//! How each field is written.

use std::collections::HashMap;

use prost_reflect::FieldDescriptor;

use super::form::{Form, Number, form};

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

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    /// Its number on the wire.
    pub(super) number: u32,
    /// The name in JSON, quoted, with its colon.
    pub(super) name: Vec<u8>,
    pub(super) shape: Shape,
    /// Type of the value, or of each value.
    pub(super) form: Form,
    /// Position of the `oneof` that it belongs to.
    pub(super) oneof: Option<u32>,
}

/// The plan of a field. `places` holds the position of each message's plan by its full name.
pub(super) fn field(of: &FieldDescriptor, places: &HashMap<String, usize>) -> Field {
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
