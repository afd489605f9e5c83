//! Provisioning events of a machine, and the health that they tell.

use proto_types::{MachineId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{Allocation, EventKind};

/// Most events kept per machine; beyond it the oldest are dropped.
pub const EVENTS_MAX: usize = 100;

/// Longest message of an event, characters; the rest is cut off.
pub const EVENT_MESSAGE_MAX: usize = 1024;

/// Most fingerprints of reported events kept per machine; beyond it the oldest are dropped, and a
/// repeated report of one of them counts as new.
pub const EVENTS_TOLD_MAX: usize = 32;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The sender's time, clamped to what control can believe.
    pub time: Timestamp,
    /// Its kind.
    pub kind: EventKind,
    /// The sender's message.
    #[serde(default)]
    pub message: String,
}

/// Liveliness of a machine, by its signs of life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveliness {
    /// Nothing was heard yet.
    #[default]
    Unspecified,
    /// It gives signs of life.
    Alive,
    /// It is silent and free.
    Dead,
    /// It is silent, but a tenant has it and may have silenced it.
    Unknown,
}

/// Events of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLog {
    /// The machine; the key.
    pub machine: MachineId,
    /// The last events, oldest first; heartbeats are not stored.
    #[serde(default)]
    pub events: Vec<Event>,
    /// State of the event state machine: the last event that moved it. `None` means its start.
    #[serde(default)]
    pub state: Option<EventKind>,
    /// Time of the last sign of life, by control's clock.
    #[serde(default)]
    pub last_event_time: Timestamp,
    /// The last event that failed or came out of order.
    #[serde(default)]
    pub last_error_event: Option<Event>,
    /// Liveliness as last judged.
    #[serde(default)]
    pub liveliness: Liveliness,
    /// `true` if the machine boots again and again without completing a step.
    #[serde(default)]
    pub crash_loop: bool,
    /// `true` if it phones home although it was freed: the tenant's system still runs.
    #[serde(default)]
    pub failed_reclaim: bool,
    /// Fingerprints of the last events as their senders reported them, newest last. A sender that
    /// did not get the answer repeats the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<u64>,
    /// Number of events ever recorded, including those that were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recorded: u64,
    /// After a restore: time at which a credential that the backup knows was used for this machine,
    /// of its hammer's boot or of its installed system. `None` means not yet, or that the state was
    /// not restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
/// `true` for 0, which serde leaves out.
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl EventLog {
    /// An empty log.
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

    /// The events since an allocation of the machine, oldest first. They are found by count and not
    /// by time: events carry the time of their sender, whose clock may be behind.
    pub fn events_since(&self, allocation: &Allocation) -> &[Event] {
        let counted = self.recorded.saturating_sub(allocation.events_before);
        let counted = usize::try_from(counted).unwrap_or(usize::MAX);
        // More events than are kept may belong to the allocation: then all kept ones are its own.
        let first = self.events.len().saturating_sub(counted);
        self.events.get(first..).unwrap_or_default()
    }
}
