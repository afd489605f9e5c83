//! Ports that were set up for traced calls.

use std::collections::BTreeMap;

use base_telemetry::traces::{Span, SpanKind, Spans, TraceContext, now_ns};
use proto_mesh::SwitchDesired;

/// The traces that ports were last wanted for, and which of them were told. Bounded by the ports
/// of the switch.
#[derive(Debug, Default)]
pub(crate) struct PortTraces {
    spans: Spans,
    switch: String,
    ports: BTreeMap<String, Port>,
}

#[derive(Debug)]
struct Port {
    context: TraceContext,
    /// When it was first seen.
    began_ns: u64,
    is_told: bool,
}

impl PortTraces {
    /// Of a switch, told there.
    pub(crate) fn new(spans: Spans, switch: String) -> Self {
        Self {
            spans,
            switch,
            ports: BTreeMap::new(),
        }
    }

    /// Notes what is wanted now, before a pass.
    pub(crate) fn wanted(&mut self, desired: &SwitchDesired) {
        if !self.spans.is_on() {
            return;
        }
        let mut before = std::mem::take(&mut self.ports);
        let traced = desired.ports.iter().filter_map(|port| {
            let context: TraceContext = port.traceparent.parse().ok()?;
            let known = before.remove(&port.name);
            let known = known.filter(|it| it.context == context);
            let fresh = || Port {
                context,
                began_ns: now_ns(),
                is_told: false,
            };
            Some((port.name.clone(), known.unwrap_or_else(fresh)))
        });
        self.ports = traced.collect();
    }

    /// Tells what a pass brought about, once: the switch is at this generation.
    pub(crate) fn applied(&mut self, generation: u64, error: &str) {
        for (name, port) in self.ports.iter_mut().filter(|(_, port)| !port.is_told) {
            port.is_told = true;
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
