//! Machines' provisioning events, told as they come.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::timeline::Timeline;

/// Tells each new event of each machine once.
#[derive(Debug, Default)]
pub struct Watcher {
    told: BTreeMap<String, usize>,
}

/// The newest event of a machine, as the contract names it in lower case: "waiting".
#[must_use]
pub(crate) fn newest(machine: &Value) -> String {
    sorted(machine).last().map(|e| name(e)).unwrap_or_default()
}

fn sorted(machine: &Value) -> Vec<&Value> {
    let events = machine
        .pointer("/recentProvisioningEvents/events")
        .and_then(Value::as_array);
    let mut events: Vec<&Value> = events.map(|all| all.iter().collect()).unwrap_or_default();
    let time = |e: &Value| {
        e.get("time")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    events.sort_by_key(|e| padded(&time(e)));
    events
}

/// RFC 3339 times sort as text when their fractions are equally long.
fn padded(time: &str) -> String {
    let plain = time.trim_end_matches('Z');
    let (seconds, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    format!("{seconds}.{fraction:0<9}")
}

fn name(event: &Value) -> String {
    let full = event
        .get("event")
        .and_then(Value::as_str)
        .unwrap_or_default();
    full.trim_start_matches("MACHINE_PROVISIONING_EVENT_TYPE_")
        .to_lowercase()
        .replace('_', " ")
}

impl Watcher {
    /// Tells what is new on the machine of that name, as `metalmesh machine show -o json` has it.
    pub fn tell(&mut self, time: &Timeline, known: &str, machine: &Value) {
        let uuid = machine
            .get("uuid")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let events = sorted(machine);
        let told = self.told.entry(uuid.to_owned()).or_default();
        // The list is bounded: when it has wrapped, only the newest is certainly new.
        let fresh = events.get(*told..).unwrap_or_default();
        for event in fresh {
            let message = event
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let message = if message.is_empty() {
                String::new()
            } else {
                format!(": {message}")
            };
            time.note(&format!("{known} {}{message}", name(event)));
        }
        *told = events.len();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_event_is_the_latest_not_the_first() {
        let event = |time: &str, kind: &str| json!({"time": time, "event": format!("MACHINE_PROVISIONING_EVENT_TYPE_{kind}")});
        let machine = json!({"recentProvisioningEvents": {"events": [
            event("2026-01-01T00:00:02.5Z", "PHONED_HOME"),
            event("2026-01-01T00:00:02.125Z", "WAITING"),
            event("2026-01-01T00:00:02Z", "PREPARING"),
        ]}});
        assert_eq!(newest(&machine), "phoned home");
        assert_eq!(newest(&json!({})), "");
    }
}
