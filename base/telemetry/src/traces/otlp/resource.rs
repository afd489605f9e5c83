//! The origin of spans.

use prost::Message;

use super::attribute::KeyValue;

/// The service that made the spans.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

/// `InstrumentationScope`: the library that made the spans.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}
