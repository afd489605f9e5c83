//! The audit trail: who did what, when, from where, and what came of it.

use proto_types::{AuditHash, AuditLine, AuditPhase, RETENTION_METHOD, Timestamp};
use serde::{Deserialize, Serialize};

/// Default number of audit records that are kept, see
/// [`AuditRetention`](crate::cluster::entity::AuditRetention). Beyond it the oldest are dropped.
pub const AUDIT_MAX: usize = 10_000;
/// Slack of the retention, records: drops start when there are so many more than the bound, so that
/// they come in batches.
pub const AUDIT_DROP: usize = 256;
/// Most export destinations whose progress is kept. Another one replaces the one that has not
/// advanced for longest.
pub const AUDIT_EXPORTS_MAX: usize = 16;

/// An audit record: caller, method, time, source and result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The key: a number that increases from record to record. `apply` sets it.
    #[serde(default)]
    pub sequence: u64,
    /// Id of the call. The records of its request and of its response have the same.
    pub id: String,
    /// Time of the recorded part; of a whole call its begin.
    pub time: Timestamp,
    /// End of the call, in records of whole calls. `None` in other records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// Login or SPIFFE id of the caller. Empty if there is none.
    #[serde(default)]
    pub user: String,
    /// Login of the tenant that the call names. Empty means none.
    #[serde(default)]
    pub tenant: String,
    /// Id of the project that the call names. `None` means none.
    #[serde(default)]
    pub project: Option<String>,
    /// Full method name.
    pub method: String,
    /// The request as JSON, without secrets. `None` means that it is not recorded.
    #[serde(default)]
    pub body: Option<String>,
    /// IP address of the caller. Empty means unknown.
    #[serde(default)]
    pub source_ip: String,
    /// gRPC status code, in records of responses and of whole calls. `None` in other records.
    #[serde(default)]
    pub result_code: Option<i32>,
    /// The part of the call that the record describes: request, response, the whole, or a gap of
    /// dropped records.
    pub phase: AuditPhase,
    /// The rule of a site policy that decided the call, `policy/rule`. `None` means that the
    /// contract's table decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Number of calls that the record stands for: refused calls of one caller in one minute, or
    /// the records of a gap. `None` means one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Hash over the entry and all before it. `None` until `apply` appends the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<AuditHash>,
}

impl AuditEntry {
    /// The fields that the hash covers.
    pub fn line(&self) -> AuditLine<'_> {
        AuditLine {
            sequence: self.sequence,
            id: &self.id,
            time: self.time,
            ended: self.ended,
            user: &self.user,
            tenant: &self.tenant,
            project: self.project.as_deref(),
            method: &self.method,
            body: self.body.as_deref(),
            source_ip: &self.source_ip,
            result_code: self.result_code,
            phase: self.phase,
            rule: self.rule.as_deref(),
            count: self.count,
        }
    }

    /// A record of a whole call without its circumstances.
    pub fn blank(time: Timestamp, user: &str, method: &str) -> Self {
        Self {
            sequence: 0,
            id: String::new(),
            time,
            ended: None,
            user: user.to_owned(),
            tenant: String::new(),
            project: None,
            method: method.to_owned(),
            body: None,
            source_ip: String::new(),
            result_code: None,
            phase: AuditPhase::Call,
            rule: None,
            count: None,
            hash: None,
        }
    }

    /// The gap that replaces dropped records in the middle of the chain, up to this one.
    pub(crate) fn gap(sequence: u64, time: Timestamp, count: u32, hash: AuditHash) -> Self {
        Self {
            sequence,
            phase: AuditPhase::Dropped,
            count: Some(count),
            hash: Some(hash),
            ..Self::blank(time, "", "")
        }
    }

    /// Whose share of the trail it counts for; `None` of gaps and of what tells of them. Whoever
    /// could have any number of names shares with all others of its sort.
    pub(crate) fn share(&self) -> Option<&str> {
        if self.phase == AuditPhase::Dropped || self.method == RETENTION_METHOD {
            return None;
        }
        let machines = self.user.split_once("/machine/");
        match machines.filter(|(head, _)| head.starts_with("spiffe://")) {
            Some((head, _)) => Some(head),
            None if self.user.starts_with("component/") => Some("component"),
            None => Some(&self.user),
        }
    }
}

/// The anchor of the hash chain of the audit trail: the hash before its first record that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditAnchor {
    /// The key: [`AuditAnchor::TRAIL`].
    pub name: String,
    /// The hash before the first entry: of the last one that was dropped, or of the beginning.
    pub hash: AuditHash,
    /// Sequence number of the last record before the chain. Records with a higher one belong to the
    /// chain.
    pub sequence: u64,
    /// Begin of the chain.
    pub began: Timestamp,
    /// Number of records of the chain that were dropped since.
    pub dropped: u64,
}

impl AuditAnchor {
    /// Name of the one anchor that there is.
    pub const TRAIL: &'static str = "trail";
}

/// Progress of the export of the audit trail to a destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditExport {
    /// The key: name of the destination in the configuration.
    pub name: String,
    /// Sequence number of the last record that was sent.
    pub sequence: u64,
    /// Highest sequence number that the destination may lack, because the record was dropped before
    /// it was sent. 0 means none.
    pub missed: u64,
    /// Time of the last progress.
    pub at: Timestamp,
}
