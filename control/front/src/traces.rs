//! Calls as parts of traces.

use std::sync::Arc;

use base_telemetry::traces::{Sampler, Span, SpanKind, Spans, TraceContext, now_ns};
use http::HeaderMap;
use proto_public::{Method, Scope};
use tonic::Code;

tokio::task_local! {
    /// The span of the call that this task carries out.
    static CALL: TraceContext;
}

/// Where W3C says that the context is.
const TRACEPARENT: &str = "traceparent";

/// The span of the call that this task carries out, where there is one.
pub fn current() -> Option<TraceContext> {
    CALL.try_with(|context| *context).ok()
}

/// Which calls are traced, and where their spans go; the default traces none. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tracing {
    spans: Spans,
    sampler: Option<Arc<Sampler>>,
}

impl Tracing {
    /// Traces those calls that the sampler takes.
    pub fn new(spans: Spans, sampler: Sampler) -> Self {
        Self {
            spans,
            sampler: Some(Arc::new(sampler)),
        }
    }

    /// A call that was let in: its caller's trace goes on; one that is audited begins one where
    /// its caller has none. What everybody may call is not traced, so that nobody without a token
    /// takes the room of others, nor the collector's.
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

/// A call that is traced; its span is told when it is dropped.
#[derive(Debug)]
pub struct CallSpan {
    spans: Spans,
    span: Span,
    code: Code,
}

impl CallSpan {
    /// Carries the call out as a part of the trace.
    pub async fn within<F: Future>(span: Option<&Self>, work: F) -> F::Output {
        match span {
            Some(it) => CALL.scope(it.span.context, work).await,
            None => work.await,
        }
    }

    /// How the call ended; one that is dropped without was cancelled.
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
