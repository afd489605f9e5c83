//! `ExportTraceServiceRequest` of OTLP 1.x: the fields that are filled here.

mod attribute;
mod export_request;
mod otlp_span;
mod resource;

use prost::Message;

use crate::traces::Span;
use attribute::{AnyValue, KeyValue};
use export_request::{Request, ResourceSpans, ScopeSpans};
use otlp_span::{Event, OtlpSpan, Status};
use resource::{Resource, Scope};

/// `STATUS_CODE_ERROR`.
const FAILED: i32 = 2;

/// The request for a batch, encoded.
pub(crate) fn request(service: &str, more: &[(&'static str, String)], spans: &[Span]) -> Vec<u8> {
    let mut attributes = vec![
        text("service.name", service),
        text("service.version", env!("CARGO_PKG_VERSION")),
    ];
    attributes.extend(more.iter().map(|(key, value)| text(key, value)));
    let scope = Scope {
        name: "metalmesh".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let request = Request {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes }),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope),
                spans: spans.iter().map(span).collect(),
            }],
        }],
    };
    request.encode_to_vec()
}

fn span(span: &Span) -> OtlpSpan {
    let attributes = span.attributes.iter();
    let events = span.events.iter();
    OtlpSpan {
        trace_id: span.context.trace.to_vec(),
        span_id: span.context.span.to_vec(),
        parent_span_id: span.parent.map(Vec::from).unwrap_or_default(),
        name: span.name.to_string(),
        kind: span.kind as i32,
        start_time_unix_nano: span.began_ns,
        end_time_unix_nano: span.ended_ns.max(span.began_ns),
        attributes: attributes.map(|(key, value)| text(key, value)).collect(),
        events: events
            .map(|(time_unix_nano, name)| Event {
                time_unix_nano: *time_unix_nano,
                name: (*name).to_owned(),
            })
            .collect(),
        status: span.error.as_ref().map(|error| Status {
            message: error.clone(),
            code: FAILED,
        }),
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            string_value: Some(value.to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::{SpanKind, TraceContext};

    #[test]
    fn a_request() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context: TraceContext = text.parse().unwrap();
        let span = Span {
            context: context.with_span([1; 8]),
            parent: Some(context.span),
            name: "power-on".into(),
            kind: SpanKind::Consumer,
            began_ns: 1_700_000_000_123_000_000,
            ended_ns: 0,
            attributes: vec![("metalmesh.order", "o".into())],
            events: vec![(7, "Alive")],
            error: Some("no answer".into()),
        };
        let request = request("metalmesh-bmc", &[("a", "b".into())], &[span]);
        let request = Request::decode(&request[..]).unwrap();
        let of_service = &request.resource_spans[0];
        assert_eq!(of_service.resource.as_ref().unwrap().attributes.len(), 3);
        let span = &of_service.scope_spans[0].spans[0];
        assert_eq!(span.trace_id, context.trace);
        assert_eq!(span.parent_span_id, context.span);
        assert_eq!(span.end_time_unix_nano, span.start_time_unix_nano);
        assert_eq!((span.kind, &span.events[0].name[..]), (5, "Alive"));
        assert_eq!(span.status.as_ref().unwrap().code, FAILED);
    }
}
