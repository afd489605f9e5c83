//! Export of spans to a collector of OpenTelemetry: calls, BMC orders and phases of machines.
//!
//! Agents on bare machines cannot reach a collector. The leader exports the reports of pixie, hammer
//! and the installed system instead, as events in the spans of a machine's phases.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use base_telemetry::traces::{Collector, Sampler, Span, SpanKind, Spans, TraceContext, ns_of_ms};
use control_front::traces::Tracing;
use control_state::{BmcOrder, EventLog, Machine, OrderState, Phase, Record};
use control_store::{ChangeEvent, Store};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Default of `traces.calls_per_second`: new traces per second and node.
const CALLS_PER_SECOND: u32 = 100;

/// The section `[traces]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TracesSection {
    url: Option<String>,
    ca_file: Option<PathBuf>,
    authorization_file: Option<PathBuf>,
    share: Option<f64>,
    calls_per_second: Option<u32>,
}

impl TracesSection {
    /// Checks the section.
    pub(crate) fn check(self) -> Result<Self> {
        let beside = self.ca_file.is_some() || self.authorization_file.is_some();
        let url = self.url.as_deref().unwrap_or_default();
        ensure!(
            url.starts_with("https://") || !beside,
            "traces.url: ca_file and authorization_file need an https:// address, for example \
             url = \"https://collector.example:4318/v1/traces\""
        );
        let of_calls = self.share.is_some() || self.calls_per_second.is_some();
        ensure!(
            self.url.is_some() || !of_calls,
            "traces.url: share and calls_per_second need a collector, for example \
             url = \"http://127.0.0.1:4318/v1/traces\""
        );
        ensure!(
            self.share.is_none_or(|share| (0.0..=1.0).contains(&share)),
            "traces.share: must be from 0 to 1, for example share = 0.1"
        );
        Ok(self)
    }
}

/// Starts the export of spans, if it is configured.
///
/// # Errors
/// The collector cannot be used; the message names the field.
pub(crate) fn spawn(
    tasks: &mut JoinSet<()>,
    section: &TracesSection,
    store: &Store,
    stop: &CancellationToken,
) -> Result<Tracing> {
    let Some(url) = &section.url else {
        return Ok(Tracing::default());
    };
    let authorization = section.authorization_file.as_ref().map(|path| {
        let text = std::fs::read_to_string(path);
        let named = || {
            let path = path.display();
            format!("traces.authorization_file: cannot read {path}")
        };
        text.with_context(named)
    });
    let tls = section
        .ca_file
        .as_deref()
        .map(|path| base_outbound::trusting(Some(path)));
    let collector = Collector {
        url: url.clone(),
        authorization: authorization.transpose()?,
        tls: tls.transpose().context("traces.ca_file")?,
    };
    let resource = vec![
        ("metalmesh.cluster", store.cluster().to_owned()),
        ("metalmesh.node", store.node_id().to_string()),
    ];
    let spans = Spans::spawn(tasks, collector, "metalmeshd", resource, stop.clone());
    let spans = spans.context("traces.url")?;
    tasks.spawn(follow(store.clone(), spans.clone(), stop.clone()));
    let share = section.share.unwrap_or(1.0);
    let per_second = section.calls_per_second.unwrap_or(CALLS_PER_SECOND);
    Ok(Tracing::new(spans, Sampler::new(share, per_second)))
}

/// Exports the spans of orders and phases that ended while this node leads.
async fn follow(store: Store, spans: Spans, stop: CancellationToken) {
    let mut events = store.watch();
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        let changes = match event {
            None => return,
            Some(ChangeEvent::Changed { changes, .. }) if store.is_leader() => changes,
            Some(_) => continue,
        };
        for change in changes.iter() {
            let span = match (&change.before, &change.record) {
                (Some(Record::BmcOrder(before)), Some(Record::BmcOrder(order)))
                    if before.state == OrderState::Open && order.state != OrderState::Open =>
                {
                    of_order(order)
                }
                (Some(Record::Machine(before)), Some(Record::Machine(now)))
                    if before.phase != now.phase =>
                {
                    of_phase(&store, before, now)
                }
                _ => None,
            };
            if let Some(span) = span {
                spans.put(span);
            }
        }
    }
}

/// The span of an order. Its id is derived from the order, so that the agent's span can name it as its
/// parent.
fn of_order(order: &BmcOrder) -> Option<Span> {
    let call: TraceContext = order.trace.as_deref()?.parse().ok()?;
    let id = order.id.to_string();
    let error = match order.state {
        OrderState::Open | OrderState::Done => None,
        OrderState::Failed | OrderState::Expired => Some(order.error.clone().unwrap_or_default()),
        OrderState::Cancelled => Some("overtaken by a change of plan".to_owned()),
    };
    Some(Span {
        context: call.with_span(TraceContext::span_of(&id)?),
        parent: Some(call.span),
        name: format!("order {}", order.action.as_str()).into(),
        kind: SpanKind::Producer,
        began_ns: ns_of_ms(order.created_at.ms()),
        ended_ns: ns_of_ms(order.finished_at.unwrap_or(order.deadline).ms()),
        attributes: vec![
            ("metalmesh.order", id),
            ("metalmesh.machine", order.machine.to_string()),
            ("metalmesh.partition", order.partition.to_string()),
        ],
        events: Vec::new(),
        error,
    })
}

/// The span of the phase that a machine left, with the events that agents reported during it.
fn of_phase(store: &Store, before: &Machine, now: &Machine) -> Option<Span> {
    let call: TraceContext = before.trace.as_deref()?.parse().ok()?;
    let events = store.read_local(|tables| {
        let events = tables.get::<EventLog>(&before.id);
        let events = events.into_iter().flat_map(|log| log.events.iter());
        let meanwhile =
            events.filter(|event| event.time >= before.since && event.time <= now.since);
        let reported = meanwhile.map(|event| (ns_of_ms(event.time.ms()), event.kind.as_str()));
        reported.collect::<Vec<_>>()
    });
    let partition = before.partition.iter();
    let partition = partition.map(|id| ("metalmesh.partition", id.to_string()));
    let mut attributes = vec![("metalmesh.machine", before.id.to_string())];
    attributes.extend(partition);
    Some(Span {
        context: call.child(),
        parent: Some(call.span),
        name: format!("phase {}", before.phase).into(),
        kind: SpanKind::Internal,
        began_ns: ns_of_ms(before.since.ms()),
        ended_ns: ns_of_ms(now.since.ms()),
        attributes,
        events: events.unwrap_or_default(),
        error: matches!(now.phase, Phase::Held(_)).then(|| "the machine is held".to_owned()),
    })
}
