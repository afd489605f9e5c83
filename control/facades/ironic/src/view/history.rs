//! Events of a node, as its history.

use control_state::Event;
use proto_types::MachineId;
use serde_json::{Value, json};
use uuid::{Builder, Uuid};

use super::{links, time};
use crate::version::ApiVersion;

/// Longest text of an event in a list, characters; longer ones are cut, as in Ironic.
const SHORT_TEXT_MAX: usize = 255;
/// Signs in place of the part that was cut.
const CUT: &str = "...";
/// Kind of all events: they are those of the machine's life.
const EVENT_TYPE: &str = "provisioning";
/// Microversion from which events have the project that caused them.
const WITH_PROJECT: u16 = 113;
/// Microversion from which events have states and durations.
const WITH_STATES: u16 = 115;

/// An event of a machine, with its number among all that were ever recorded of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberedEvent<'a> {
    /// The machine.
    pub(crate) machine: MachineId,
    /// Number of the event, from 0.
    pub(crate) number: u64,
    /// The event.
    pub(crate) event: &'a Event,
    /// `true` if it is a failure.
    pub(crate) is_error: bool,
}

impl NumberedEvent<'_> {
    /// The id of the event: the same for each reader, and in the order of the events of one machine.
    pub(crate) fn id(&self) -> Uuid {
        let mut bytes = [0; 16];
        let (of_machine, of_number) = bytes.split_at_mut(8);
        of_machine.copy_from_slice(&short_hash(self.machine).to_be_bytes());
        of_number.copy_from_slice(&self.number.to_be_bytes());
        Builder::from_custom_bytes(bytes).into_uuid()
    }
}

/// FNV-1a of a machine's id. The standard library's hasher may differ between builds, and ids have to
/// stay.
fn short_hash(machine: MachineId) -> u64 {
    let bytes = machine.uuid().into_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// An event with all of its fields.
pub(crate) fn history_event(shown: NumberedEvent<'_>, version: ApiVersion, base: &str) -> Value {
    let (machine, id) = (shown.machine, shown.id());
    let mut event = json!({
        "uuid": id.to_string(),
        "created_at": time(shown.event.time),
        "severity": if shown.is_error { "ERROR" } else { "INFO" },
        "event_type": EVENT_TYPE,
        "event": text(shown.event),
        "conductor": null,
        "user": null,
        "links": links(&format!("{base}/v1/nodes/{machine}/history/{id}")),
    });
    if version.has(WITH_PROJECT) {
        event["project"] = Value::Null;
    }
    if version.has(WITH_STATES) {
        for name in ["state", "target_provision_state", "duration_seconds"] {
            event[name] = Value::Null;
        }
    }
    event
}

/// The same event with a text for lists.
pub(crate) fn short_event(mut event: Value) -> Value {
    let text = event["event"].as_str().unwrap_or_default();
    if text.chars().count() > SHORT_TEXT_MAX {
        let kept = SHORT_TEXT_MAX - CUT.len();
        let cut: String = text.chars().take(kept).chain(CUT.chars()).collect();
        event["event"] = cut.into();
    }
    event
}

fn text(event: &Event) -> String {
    let kind = event.kind.as_str();
    match event.message.as_str() {
        "" => kind.to_owned(),
        message => format!("{kind}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use control_state::EventKind;
    use proto_types::Timestamp;

    use super::*;

    fn event(message: &str) -> Event {
        Event {
            time: Timestamp::from_ms(1_795_224_773_548),
            kind: EventKind::PxeBooting,
            message: message.to_owned(),
        }
    }

    fn numbered(event: &Event, machine: u128, number: u64) -> NumberedEvent<'_> {
        NumberedEvent {
            machine: MachineId::new(Uuid::from_u128(machine)),
            number,
            event,
            is_error: false,
        }
    }

    #[test]
    fn ids_are_in_the_order_of_events() {
        let event = event("");
        let id = |machine, number| numbered(&event, machine, number).id();
        assert_eq!(id(7, 3), id(7, 3));
        assert!(id(7, 3).to_string() < id(7, 4).to_string());
        assert!(id(7, 255).to_string() < id(7, 256).to_string());
        // Ids of machines often differ in their last digits only.
        assert_ne!(id(7, 3), id(8, 3));
        assert_eq!(id(7, 3).get_version_num(), 8);
    }

    #[test]
    fn fields_are_as_old_as_their_microversion() {
        let event = event("uefi");
        for (version, has_project, has_state) in
            [(112, false, false), (113, true, false), (115, true, true)]
        {
            let shown = numbered(&event, 7, 0);
            let shown = history_event(shown, ApiVersion::of(version), "http://c");
            assert_eq!(shown.get("project").is_some(), has_project, "{version}");
            assert_eq!(shown.get("state").is_some(), has_state, "{version}");
            assert_eq!(shown["event"], "PXE Booting: uefi");
            assert_eq!(shown["severity"], "INFO");
            assert_eq!(shown["created_at"], "2026-11-21T01:32:53.548000+00:00");
            let id = shown["uuid"].as_str().unwrap();
            let own = "http://c/v1/nodes/00000000-0000-0000-0000-000000000007/history/";
            assert_eq!(shown["links"][0]["href"], format!("{own}{id}"));
        }
    }

    #[test]
    fn texts_of_lists_are_cut() {
        // With the name of the kind before it, 13 characters more.
        for (length, shown_length) in [(0, 11), (200, 213), (242, 255), (243, 255), (400, 255)] {
            let event = event(&"x".repeat(length));
            let shown = history_event(numbered(&event, 7, 0), ApiVersion::of(115), "http://c");
            let short = short_event(shown);
            let text = short["event"].as_str().unwrap();
            assert_eq!(text.len(), shown_length, "{length}");
            assert_eq!(text.ends_with(CUT), length > 242, "{length}");
        }
    }
}
