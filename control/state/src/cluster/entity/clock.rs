//! The cluster's time, as the state believes it.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// The time by which deadlines and ends of records are judged. Ticks of the leader advance it; it
/// goes back only when an operator sets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterClock {
    /// The key: [`ClusterClock::ONE`].
    pub name: String,
    /// Time of the last tick that was accepted.
    pub time: Timestamp,
    /// A jump of the leader's clock that an operator must accept or correct. `None` means that
    /// ticks are accepted.
    #[serde(default)]
    pub held: Option<HeldJump>,
    /// The backup that this state is from: machines are not judged. `None` if it was never
    /// restored, or since an operator reconciled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Restored>,
    /// Time of the last reconciliation after a restore, from which silence counts. `None` means
    /// never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconciled_at: Option<Timestamp>,
}

/// A backup that was restored. What happened after it is not in the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Time at which the backup was made.
    pub made_at: Timestamp,
    /// Revision of the state in the backup.
    pub revision: u64,
}

/// A tick that was further ahead than a clock may be. Nothing is judged by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldJump {
    /// Id of the control node whose clock jumped. 0 means unknown.
    pub node: u64,
    /// Time that its clock showed.
    pub claimed: Timestamp,
}

impl ClusterClock {
    /// Name of the only one.
    pub const ONE: &'static str = "time";
    /// A tick that is further ahead of the cluster's time is held, milliseconds: an hour. The
    /// leader's tick comes every two seconds, so that no sound clock ever jumps so far, except
    /// after the whole cluster was down for longer.
    pub const JUMP_MAX_MS: u64 = 3_600_000;
    /// The time is written at least so often, milliseconds: a quarter of the jump that is held, so
    /// that an idle cluster's time is never old enough for a sound tick to look like a jump.
    pub const STEP_MS: u64 = Self::JUMP_MAX_MS / 4;

    /// A clock that shows `time` and holds nothing.
    pub fn at(time: Timestamp) -> Self {
        Self {
            name: Self::ONE.into(),
            time,
            held: None,
            restored: None,
            reconciled_at: None,
        }
    }

    /// The same clock, showing `time` and holding nothing.
    #[must_use]
    pub fn set_to(self, time: Timestamp) -> Self {
        Self {
            time,
            held: None,
            ..self
        }
    }

    /// `true` if `now` is too far ahead to be believed without an operator's word.
    pub const fn is_jump(&self, now: Timestamp) -> bool {
        now.since_ms(self.time) > Self::JUMP_MAX_MS
    }
}
