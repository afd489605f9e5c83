//! Spans of ports that are set up for traced calls.

use std::collections::BTreeMap;

use base_telemetry::traces::{Span, SpanKind, Spans, TraceContext, now_ns};
use proto_mesh::SwitchDesired;

/// The newest trace of each port, and whether its span was sent. Bounded by the ports of the
/// switch.
#[derive(Debug, Default)]
pub(crate) struct PortTraces {
    spans: Spans,
    switch: String,
    ports: BTreeMap<String, PortTrace>,
}

/// The trace of one port.
#[derive(Debug)]
struct PortTrace {
    context: TraceContext,
    /// Time when the agent first saw the trace, nanoseconds since the epoch.
    began_ns: u64,
    /// `true` if the span was sent.
    is_sent: bool,
}

impl PortTraces {
    /// No traces yet; `spans` takes those of the switch.
    pub(crate) fn new(spans: Spans, switch: String) -> Self {
        Self {
            spans,
            switch,
            ports: BTreeMap::new(),
        }
    }

    /// Notes the traces of the desired state, before a pass.
    pub(crate) fn wanted(&mut self, desired: &SwitchDesired) {
        if !self.spans.is_on() {
            return;
        }
        let mut before = std::mem::take(&mut self.ports);
        let traced = desired.ports.iter().filter_map(|port| {
            let context: TraceContext = port.traceparent.parse().ok()?;
            let known = before.remove(&port.name);
            let known = known.filter(|trace| trace.context == context);
            let fresh = || PortTrace {
                context,
                began_ns: now_ns(),
                is_sent: false,
            };
            Some((port.name.clone(), known.unwrap_or_else(fresh)))
        });
        self.ports = traced.collect();
    }

    /// Sends the spans of the noted traces once, after a pass that applied this generation.
    pub(crate) fn applied(&mut self, generation: u64, error: &str) {
        for (name, port) in self.ports.iter_mut().filter(|(_, port)| !port.is_sent) {
            port.is_sent = true;
            self.spans.put(Span {
                context: port.context.child(),
                parent: Some(port.context.span),
                name: "set up port".into(),
                kind: SpanKind::Consumer,
                began_ns: port.began_ns,
                ended_ns: now_ns(),
                attributes: vec![
                    ("metalmesh.switch", self.switch.clone()),
                    ("metalmesh.port", name.clone()),
                    ("metalmesh.generation", generation.to_string()),
                ],
                events: Vec::new(),
                error: (!error.is_empty()).then(|| error.to_owned()),
            });
        }
    }
}
