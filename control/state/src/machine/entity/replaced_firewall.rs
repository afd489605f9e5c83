//! The firewall whose place another one takes.

use proto_types::{AllocationId, MachineId, Timestamp};
use serde::{Deserialize, Serialize};

/// A firewall of the same project that an allocation takes the place of. It belongs to the
/// replacement, so that it ends with it, and its seniority outlives the firewall that is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedFirewall {
    /// The firewall that is replaced.
    pub machine: MachineId,
    /// Its allocation: a later one of the machine is another firewall.
    pub allocation: AllocationId,
    /// Its seniority among the firewalls of the project, which the replacement gets.
    pub since: Timestamp,
    /// Time at which its place was taken. `None` means not yet: the replacement is a standby.
    #[serde(default)]
    pub taken_at: Option<Timestamp>,
}
