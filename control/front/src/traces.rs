//! Traces of calls.

use std::sync::Arc;

use base_telemetry::traces::{Sampler, Span, SpanKind, Spans, TraceContext, now_ns};
use http::HeaderMap;
use proto_public::{Method, Scope};
use tonic::Code;

tokio::task_local! {
    /// The span of the call that this task serves.
    static CALL: TraceContext;
}

/// Header of the trace context (W3C).
const TRACEPARENT: &str = "traceparent";

/// The span of the call that this task serves. `None` means that it is not traced.
pub fn current() -> Option<TraceContext> {
    CALL.try_with(|context| *context).ok()
}

/// The sampler of calls and the sink of their spans. The default traces no call. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tracing {
    spans: Spans,
    sampler: Option<Arc<Sampler>>,
}

impl Tracing {
    /// Traces the calls that the sampler accepts.
    pub fn new(spans: Spans, sampler: Sampler) -> Self {
        Self {
            spans,
            sampler: Some(Arc::new(sampler)),
        }
    }

    /// The trace of an admitted call. It continues the trace of the caller. Without one, an audited
    /// call begins a trace. Public methods are not traced, so that callers without a token cannot use
    /// up the rate of traces.
    pub fn begin(
        &self,
        method: &'static Method,
        headers: &HeaderMap,
        began_ns: u64,
    ) -> Option<CallSpan> {
        let sampler = self.sampler.as_ref()?;
        if matches!(method.scope, Scope::Public) {
            return None;
        }
        let header = headers
            .get(TRACEPARENT)
            .and_then(|value| value.to_str().ok());
        let outside: Option<TraceContext> = header.and_then(|text| text.parse().ok());
        let (context, parent) = sampler.take(outside, method.audited, now_ns())?;
        Some(CallSpan {
            spans: self.spans.clone(),
            span: Span {
                context,
                parent,
                name: method.path.trim_start_matches('/').into(),
                kind: SpanKind::Server,
                began_ns,
                ended_ns: began_ns,
                attributes: vec![("rpc.system", "grpc".to_owned())],
                events: Vec::new(),
                error: None,
            },
            code: Code::Cancelled,
        })
    }
}

/// A traced call. Dropping it records its span.
#[derive(Debug)]
pub struct CallSpan {
    spans: Spans,
    span: Span,
    code: Code,
}

impl CallSpan {
    /// Serves the call within its span.
    pub async fn within<F: Future>(span: Option<&Self>, work: F) -> F::Output {
        match span {
            Some(it) => CALL.scope(it.span.context, work).await,
            None => work.await,
        }
    }

    /// Sets the outcome of the call. A call dropped without one counts as cancelled.
    pub fn end(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        let mut span = self.span.clone();
        span.ended_ns = now_ns();
        let code = i32::from(self.code).to_string();
        span.attributes.push(("rpc.grpc.status_code", code));
        if self.code != Code::Ok {
            span.error = Some(self.code.description().to_owned());
        }
        self.spans.put(span);
    }
}
