//! A span on the wire.

use prost::Message;

use super::attribute::KeyValue;

/// `Span`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpSpan {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(int32, tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<Event>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
}

/// A point in time of a span.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    #[prost(fixed64, tag = "1")]
    pub(super) time_unix_nano: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

/// The result of a span. Absent means no failure.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(int32, tag = "3")]
    pub(super) code: i32,
}
