//! The request with its levels of grouping.

use prost::Message;

use super::otlp_span::OtlpSpan;
use super::resource::{Resource, Scope};

/// `ExportTraceServiceRequest`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

/// Spans of one service.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_spans: Vec<ScopeSpans>,
}

/// Spans of one part of a service.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<OtlpSpan>,
}
