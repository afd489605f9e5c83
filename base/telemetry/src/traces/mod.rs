//! Traces: their context in headers and messages, and spans on their way to a collector.
//!
//! A [`TraceContext`] travels as W3C's `traceparent` (version 00). Whoever does a part of the work
//! gives a [`Span`] to its [`Spans`], which sends batches to a collector of OpenTelemetry by
//! OTLP/HTTP (protobuf); without a collector nothing is kept and nothing is sent. Where traces
//! begin, a [`Sampler`] says which.
//!
//! The published crates of OpenTelemetry are not used: their SDK gives spans their ids, while here
//! the span of an order begins on one node and ends on another one, under an id that all make of
//! the order's; and what is left of them is one message and one POST.
//!
//! Invariants: work never waits for a collector: spans that find the queue full are dropped and
//! counted; a context from outside is taken only when it is well formed, and never longer than
//! [`TRACEPARENT_LEN`]; texts of errors are cut at [`ERROR_CHARS_MAX`].

mod collector;
mod context;
mod export;
mod otlp;
mod sampler;

pub use collector::{Collector, CollectorError};
pub use context::{NotTraceparent, TRACEPARENT_LEN, TraceContext};
pub use export::{ERROR_CHARS_MAX, Spans};
pub use sampler::Sampler;

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

/// The role of a span in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside.
    Internal = 1,
    /// Answers somebody.
    Server = 2,
    /// Leaves work for somebody who comes for it.
    Producer = 4,
    /// Does what somebody left.
    Consumer = 5,
}

/// A part of the work, with its begin and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The trace, and the span's own id.
    pub context: TraceContext,
    /// Id of the span that this is a part of.
    pub parent: Option<[u8; 8]>,
    /// Name of the operation, from a bounded set.
    pub name: Cow<'static, str>,
    /// Its part in a call.
    pub kind: SpanKind,
    /// Nanoseconds since the epoch.
    pub began_ns: u64,
    /// Nanoseconds since the epoch.
    pub ended_ns: u64,
    /// Attributes: ids; no secrets, and no data of a tenant.
    pub attributes: Vec<(&'static str, String)>,
    /// Events: nanoseconds since the epoch, and a name from a bounded set.
    pub events: Vec<(u64, &'static str)>,
    /// Why it failed.
    pub error: Option<String>,
}

/// Nanoseconds since the epoch, from the system clock.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds of milliseconds.
pub const fn ns_of_ms(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}
