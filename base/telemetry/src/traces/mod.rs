//! Traces: their context in headers and messages, and the export of spans to a collector.
//!
//! A [`TraceContext`] travels as `traceparent` (W3C Trace Context, version 00). A program hands each
//! finished [`Span`] to its [`Spans`], which sends batches to an OpenTelemetry collector by OTLP/HTTP
//! (protobuf). Without a collector nothing is kept and nothing is sent. A [`Sampler`] decides which
//! calls begin a trace.
//!
//! The published OpenTelemetry crates are not used. Their SDK chooses the ids of spans, but the span
//! of an order begins on one node and ends on another, under an id that both derive from the order's
//! id. Without the SDK one message and one POST remain.
//!
//! Invariants:
//! - A span that finds the queue full is dropped and counted; the caller never waits.
//! - A trace context from outside is used only if it is well formed, at [`TRACEPARENT_LEN`] characters.
//! - Error texts are cut at [`ERROR_CHARS_MAX`] characters.

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
    /// Work inside a process.
    Internal = 1,
    /// Serves a call.
    Server = 2,
    /// Queues work, such as an order, that a consumer fetches.
    Producer = 4,
    /// Executes queued work.
    Consumer = 5,
}

/// An operation, with its start and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The trace and the id of this span.
    pub context: TraceContext,
    /// Id of the parent span. `None` means this is the root of the trace.
    pub parent: Option<[u8; 8]>,
    /// Name of the operation, from a bounded set.
    pub name: Cow<'static, str>,
    /// The role of the span.
    pub kind: SpanKind,
    /// Start, nanoseconds since the epoch.
    pub began_ns: u64,
    /// End, nanoseconds since the epoch.
    pub ended_ns: u64,
    /// Attributes: ids only, no secrets and no data of a tenant.
    pub attributes: Vec<(&'static str, String)>,
    /// Events: nanoseconds since the epoch, and a name from a bounded set.
    pub events: Vec<(u64, &'static str)>,
    /// The error. `None` means the operation succeeded.
    pub error: Option<String>,
}

/// Nanoseconds since the epoch, from the system clock.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// Converts milliseconds to nanoseconds.
pub const fn ns_of_ms(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}
