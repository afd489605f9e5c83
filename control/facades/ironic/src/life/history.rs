//! The events of a node.

use control_state::{Event, EventKind, EventLog, Machine, Tables};
use proto_types::ProjectId;

use super::rights::may_use;
use crate::access::{SeenNode, seen_node};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{ListQuery, ListRow, SortValue, page, selected};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{NumberedEvent, history_event, short_event};

/// The rule for events.
const GET: &str = "baremetal:node:history:get";
/// Fields of events in lists.
const SHORT_FIELDS: [&str; 4] = ["uuid", "created_at", "severity", "event"];
/// Fields by which events are sorted, beside their id, which is in their order.
const SORT_KEYS: [&str; 2] = ["created_at", "severity"];

/// `GET /nodes/{node}/history`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let query = ListQuery::of(call, &SORT_KEYS, &SHORT_FIELDS)?;
        let path = format!("/nodes/{}/history", call.parameter("node"));
        let found = call.read(|tables| {
            let node = node(call, tables)?;
            let events = visible_events(tables, &node.machine, call.caller.project());
            let shown = query.shown(&SHORT_FIELDS);
            let rows = events.into_iter().map(|event| ListRow {
                key: event.id().to_string(),
                sort: sort_value(&event, &query.sort_key),
                make: Box::new({
                    let shown = shown.clone();
                    move || {
                        let full = history_event(event, call.version, call.base);
                        match &shown {
                            Some(_) => selected(short_event(full), shown.as_deref()),
                            None => full,
                        }
                    }
                }),
            });
            page(call, &query, "history", &path, rows.collect())
        });
        Ok(IronicAnswer::ok(found.await?))
    })
}

/// `GET /nodes/{node}/history/{event}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let found = call.read(|tables| {
            let node = node(call, tables)?;
            let wanted = call.parameter("event");
            let events = visible_events(tables, &node.machine, call.caller.project());
            let mut events = events.into_iter();
            let found = events.find(|event| event.id().to_string() == wanted);
            let found = found.ok_or_else(|| {
                IronicError::not_found("Node", &format!("history record {wanted}"))
            })?;
            Ok(history_event(found, call.version, call.base))
        });
        Ok(IronicAnswer::ok(found.await?))
    })
}

/// The node of the path, if the caller may read its events.
fn node(call: &IronicCall<'_>, tables: &Tables) -> Result<SeenNode, IronicError> {
    let ident = call.parameter("node");
    let node = seen_node(tables, call.policy, call.caller, ident)?;
    call.require(GET, &node.target())?;
    Ok(node)
}

fn sort_value(event: &NumberedEvent<'_>, key: &str) -> SortValue {
    match key {
        "created_at" => SortValue::Number(event.event.time.ms()),
        "severity" => SortValue::Number(u64::from(event.is_error)),
        _ => SortValue::Absent,
    }
}

/// The events that a caller may see, the oldest first.
fn visible_events<'a>(
    tables: &'a Tables,
    machine: &Machine,
    caller: Option<ProjectId>,
) -> Vec<NumberedEvent<'a>> {
    let Some(log) = tables.get::<EventLog>(&machine.id) else {
        return Vec::new();
    };
    let visible = own_events(log, machine, caller);
    let kept = u64::try_from(visible.len()).unwrap_or(u64::MAX);
    let first = log.recorded.saturating_sub(kept);
    let numbered = (first..).zip(visible).map(|(number, event)| NumberedEvent {
        machine: machine.id,
        number,
        event,
        is_error: is_failure(log, event),
    });
    numbered.collect()
}

/// The last events of a machine, as far as they are the caller's: all for administrators, those of its
/// own tenancy for the project that uses the machine, those since the last tenancy for the project that
/// may use it. The owner of a leased machine sees none: it does not see into the lessee's machine.
fn own_events<'a>(log: &'a EventLog, machine: &Machine, caller: Option<ProjectId>) -> &'a [Event] {
    let Some(project) = caller else {
        return &log.events;
    };
    match &machine.allocation {
        Some(allocation) if machine.is_held_by(project) => log.events_since(allocation),
        None if may_use(machine, caller) => {
            let ends = |event: &Event| event.kind == EventKind::MachineReclaim;
            let first = log.events.iter().rposition(ends).map_or(0, |last| last + 1);
            log.events.get(first..).unwrap_or_default()
        }
        _ => &[],
    }
}

/// `true` for events of a failure.
fn is_failure(log: &EventLog, event: &Event) -> bool {
    event.kind == EventKind::Crashed || log.last_error_event.as_ref() == Some(event)
}

#[cfg(test)]
mod tests {
    use proto_types::Timestamp;
    use serde_json::json;

    use super::*;

    const OWNER: &str = "00000000-0000-0000-0000-00000000000a";
    const OTHER: &str = "00000000-0000-0000-0000-00000000000b";

    fn log() -> EventLog {
        let node = SeenNode::of_json(json!({}), None);
        let kinds = [
            EventKind::Installing,
            EventKind::PhonedHome,
            EventKind::MachineReclaim,
            EventKind::PxeBooting,
            EventKind::Crashed,
        ];
        let events = (1000..).zip(kinds).map(|(at, kind)| Event {
            time: Timestamp::from_ms(at),
            kind,
            message: String::new(),
        });
        EventLog {
            events: events.collect(),
            recorded: 9,
            ..EventLog::new(node.id())
        }
    }

    #[test]
    fn a_project_sees_what_happened_since_the_last_tenancy() {
        let log = log();
        for (tenure, caller, expected) in [
            (json!({}), None, 5),
            (json!({"owner": OWNER}), Some(OWNER), 2),
            (json!({"owner": OWNER, "lessee": OTHER}), Some(OWNER), 0),
            (json!({"owner": OWNER, "lessee": OTHER}), Some(OTHER), 2),
            (json!({"owner": OWNER}), Some(OTHER), 0),
            (json!({}), Some(OWNER), 0),
        ] {
            let node = SeenNode::of_json(json!({ "tenure": tenure }), None);
            let caller = caller.map(|caller| caller.parse().unwrap());
            let events = own_events(&log, &node.machine, caller);
            assert_eq!(events.len(), expected, "{tenure} {caller:?}");
        }
    }

    #[test]
    fn failures_are_errors() {
        let mut log = log();
        log.last_error_event = log.events.get(1).cloned();
        let failed: Vec<bool> = log
            .events
            .iter()
            .map(|event| is_failure(&log, event))
            .collect();
        assert_eq!(failed, [false, true, false, false, true]);
    }

    #[test]
    fn events_are_sorted_by_time_or_severity() {
        let log = log();
        let event = NumberedEvent {
            machine: log.machine,
            number: 4,
            event: &log.events[4],
            is_error: true,
        };
        for (key, expected) in [
            ("created_at", SortValue::Number(1004)),
            ("severity", SortValue::Number(1)),
            ("uuid", SortValue::Absent),
        ] {
            assert_eq!(sort_value(&event, key), expected, "{key}");
        }
    }
}
