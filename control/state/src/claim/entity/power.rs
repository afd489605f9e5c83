//! Power of a claim's host: reboots and orders.

use proto_types::{OrderId, Timestamp};
use serde::{Deserialize, Serialize};

/// Most reboots remembered of a claim; beyond it the oldest are dropped.
pub const REBOOTS_KEPT_MAX: usize = 16;
/// Most reboots of a claim in an hour; a further one is refused.
pub const REBOOTS_PER_HOUR_MAX: usize = 10;

/// The way of a reboot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RebootMode {
    /// Reset.
    #[default]
    Soft,
    /// Power off and on.
    Hard,
}

/// A reboot that was asked for. The same id asks for no second one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebootRecord {
    /// The caller's id of the request.
    pub request: String,
    /// The way.
    #[serde(default)]
    pub mode: RebootMode,
    /// Login of the caller.
    pub by: String,
    /// Time of the request.
    pub at: Timestamp,
    /// The order to the BMC.
    pub order: OrderId,
    /// Why it failed. `None` means that it was done, or is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Time of its end. `None` means that it is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// The power that control has ordered for a claim's host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimPower {
    /// `true` if the host was ordered to be off.
    pub is_off: bool,
    /// The order that is not over. `None` means none.
    pub order: Option<OrderId>,
    /// Failed orders since the wish changed.
    pub attempts: u32,
    /// Why the last order failed. `None` means that it did not.
    pub error: Option<String>,
}
