//! The path of a field in a request, as it goes to the client.

use prost::Message;

/// `buf.validate.FieldPath`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WirePath {
    #[prost(message, repeated, tag = "1")]
    elements: Vec<WireElement>,
}

/// `buf.validate.FieldPathElement`: the name of one field.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WireElement {
    #[prost(string, tag = "2")]
    field_name: String,
}

impl WirePath {
    /// The path of a field, in one element: the whole dotted name.
    pub(crate) fn of(field: &str) -> Self {
        Self {
            elements: vec![WireElement {
                field_name: field.to_owned(),
            }],
        }
    }
}
