use control_state::{RefusedRule, RuleSetKey};
use proto_firewall::RuleContent;
use proto_types::{AllocationId, MachineId, ProjectId, TenantId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Rules that a firewall is asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleCandidate {
    /// Id of the question.
    pub id: Uuid,
    /// The project that asks. `None` means an administrator.
    pub asker: Option<ProjectId>,
    /// Its tenant. `None` means an administrator, or that an older node passes the question on.
    #[serde(default)]
    pub tenant: Option<TenantId>,
    /// The firewall.
    pub machine: MachineId,
    /// Its allocation: another one is not asked.
    pub allocation: AllocationId,
    /// The set that would have the content.
    pub set: RuleSetKey,
    /// The content.
    pub content: RuleContent,
}

/// The effect that rules would have on a firewall.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CandidateEffect {
    /// Rules that would come.
    pub added: u32,
    /// Rules that would go.
    pub removed: u32,
    /// Rules that would say something else under their name.
    pub changed: u32,
    /// Rules that would be in force.
    pub rules: u32,
    /// Entries of maps in the kernel that these rules would have.
    pub entries: u64,
    /// Other parts that would change.
    pub parts: Vec<String>,
    /// Objects that would be refused, of all sources.
    pub refused: Vec<RefusedRule>,
    /// Why the candidate could not be compared. Empty means that it was.
    pub error: String,
}

/// The end of a question to a firewall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateOutcome {
    /// The firewall has answered.
    Compared(CandidateEffect),
    /// The firewall has no session with control.
    NotConnected,
    /// The firewall compares other rules, or too many questions wait.
    Busy,
    /// The firewall has not answered in time.
    TimedOut,
    /// The leader is an older program, which cannot ask.
    NotKnown,
}
