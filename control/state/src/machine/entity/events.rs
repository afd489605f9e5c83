//! Provisioning events of a machine, and the health that they tell.

use proto_types::{MachineId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{Allocation, EventKind};

/// How many events a machine keeps.
pub const EVENTS_MAX: usize = 100;

/// How much of an event's message is kept, characters.
pub const EVENT_MESSAGE_MAX: usize = 1024;

/// How many fingerprints of told events a machine keeps.
pub const EVENTS_TOLD_MAX: usize = 32;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The sender's time, clamped to what control can believe.
    pub time: Timestamp,
    /// What happened.
    pub kind: EventKind,
    /// Said about it.
    #[serde(default)]
    pub message: String,
}

/// Whether the machine gives signs of life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveliness {
    /// Nothing heard yet.
    #[default]
    Unspecified,
    /// Yes.
    Alive,
    /// No, and nobody has it.
    Dead,
    /// No, but a tenant has it and may have silenced it.
    Unknown,
}

/// Events of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLog {
    /// The key.
    pub machine: MachineId,
    /// The last events that count, oldest first; `Alive` never does.
    #[serde(default)]
    pub events: Vec<Event>,
    /// State of the event machine: the last event that counted; none at the start.
    #[serde(default)]
    pub state: Option<EventKind>,
    /// When control last heard anything, its own time.
    #[serde(default)]
    pub last_event_time: Timestamp,
    /// The last event that went wrong or came out of order.
    #[serde(default)]
    pub last_error_event: Option<Event>,
    /// Signs of life.
    #[serde(default)]
    pub liveliness: Liveliness,
    /// Boots again and again without getting anywhere.
    #[serde(default)]
    pub crash_loop: bool,
    /// Phones home although it was freed: the tenant's system still runs.
    #[serde(default)]
    pub failed_reclaim: bool,
    /// Fingerprints of the last events as their senders told them, newest last: a sender that did
    /// not get the answer tells an event again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<u64>,
    /// Number of events that were ever recorded, also of those that are not kept any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recorded: u64,
    /// After a restore: when a credential that the backup knows last spoke for this machine, that of
    /// its hammer's boot or of its installed system. `None` before, and in states that were not
    /// restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl EventLog {
    /// Nothing heard yet.
    pub fn new(machine: MachineId) -> Self {
        Self {
            machine,
            events: Vec::new(),
            state: None,
            last_event_time: Timestamp::ZERO,
            last_error_event: None,
            liveliness: Liveliness::Unspecified,
            crash_loop: false,
            failed_reclaim: false,
            told: Vec::new(),
            recorded: 0,
            confirmed_at: None,
        }
    }

    /// The events since an allocation of the machine, oldest first. They are counted, because an
    /// event has the time of its sender, whose clock may be behind.
    pub fn events_since(&self, allocation: &Allocation) -> &[Event] {
        let counted = self.recorded.saturating_sub(allocation.events_before);
        let counted = usize::try_from(counted).unwrap_or(usize::MAX);
        let first = self.events.len().saturating_sub(counted);
        self.events.get(first..).unwrap_or_default()
    }
}
