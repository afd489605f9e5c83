//! Attributes of spans and of their origin.

use prost::Message;

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// The value of an attribute. Only text is written.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(string, optional, tag = "1")]
    pub(super) string_value: Option<String>,
}
