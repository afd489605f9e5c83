//! Records of control itself: keys, audit, idempotency.

use std::fmt;

use proto_types::{
    AllocationId, AuditHash, AuditLine, AuditPhase, Digest, MachineId, ProjectId, RETENTION_METHOD,
    Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::blob;

/// How many audit entries are kept by default, see [`AuditRetention`](super::AuditRetention).
pub const AUDIT_MAX: usize = 10_000;
/// How many go at once, so that dropping costs next to nothing: so many more may be kept.
pub const AUDIT_DROP: usize = 256;
/// Places outside of which is known how far the trail was sent there.
pub const AUDIT_EXPORTS_MAX: usize = 16;

/// A certificate authority: its key is sealed before it comes here.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaRecord {
    /// The key: `root`, `agents-1`, ...; of later generations `root-2`, `agents-2`, ...
    pub id: String,
    /// Certificate, DER.
    #[serde(with = "blob")]
    pub certificate: Vec<u8>,
    /// Sealed private key; opaque here.
    #[serde(with = "blob")]
    pub sealed_key: Vec<u8>,
    /// When it came to exist.
    pub created_at: Timestamp,
    /// End of validity.
    pub not_after: Timestamp,
    /// Trusted still, but signs no more.
    #[serde(default)]
    pub retired: bool,
    /// Which generation it belongs to; the first is 1.
    #[serde(
        default = "first_generation",
        skip_serializing_if = "is_first_generation"
    )]
    pub generation: u32,
    /// The same certified by the root of the generation before, DER: so that whoever knows only
    /// that one trusts it too. Empty where that is not needed.
    #[serde(default, with = "blob", skip_serializing_if = "Vec::is_empty")]
    pub crossed: Vec<u8>,
}

const fn first_generation() -> u32 {
    1
}

const fn is_first_generation(generation: &u32) -> bool {
    *generation == 1
}

/// How far the replacement of the authority is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaPhase {
    /// Both generations are trusted; the new one signs for agents, the old one for peers.
    Overlap,
    /// Both are trusted; the new one signs for all.
    Switched,
    /// The old one is gone.
    Done,
}

/// The replacement of the certificate authority, the last one or the one under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaRotation {
    /// The key: [`CaRotation::ONE`].
    pub name: String,
    /// The generation that goes.
    pub from: u32,
    /// The generation that comes.
    pub to: u32,
    /// When it began.
    pub began_at: Timestamp,
    /// Until when the old generation is trusted at the longest.
    pub until: Timestamp,
    /// Whether everybody is asked to renew now, and the old generation goes as soon as they did.
    pub is_forced: bool,
    /// How far it is.
    pub phase: CaPhase,
    /// When the new generation began to sign for peers.
    #[serde(default)]
    pub switched_at: Option<Timestamp>,
    /// When the old generation went.
    #[serde(default)]
    pub done_at: Option<Timestamp>,
}

impl CaRotation {
    /// Name of the one that there is.
    pub const ONE: &'static str = "rotation";
    /// Shortest overlap, milliseconds: a minute.
    pub const OVERLAP_MIN_MS: u64 = 60_000;
    /// Longest overlap, milliseconds: ninety days.
    pub const OVERLAP_MAX_MS: u64 = 90 * 24 * 3_600_000;

    /// When the new generation is to sign for peers.
    pub fn switch_at(&self) -> Timestamp {
        let whole = self.until.since_ms(self.began_at);
        let before = PEERS_MS.min(whole / 2);
        Timestamp::from_ms(self.until.ms().saturating_sub(before))
    }
}

/// Control nodes trust each other by both generations for so long at the end of an overlap,
/// milliseconds: one that is down must not miss it.
const PEERS_MS: u64 = 24 * 3_600_000;

/// A key that signs tokens: sealed before it comes here.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKey {
    /// The key: `kid` of the tokens.
    pub id: String,
    /// Sealed private key; opaque here.
    #[serde(with = "blob")]
    pub sealed_key: Vec<u8>,
    /// Public key, SubjectPublicKeyInfo DER.
    #[serde(with = "blob")]
    pub public_key: Vec<u8>,
    /// When it came to exist.
    pub created_at: Timestamp,
    /// Tokens of it are refused after this.
    pub not_after: Timestamp,
    /// Verifies still, but signs no more.
    #[serde(default)]
    pub retired: bool,
}

/// Who did what, when, from where, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The key: counts up, given by `apply`.
    #[serde(default)]
    pub sequence: u64,
    /// Id of the call; both phases have the same.
    pub id: String,
    /// When.
    pub time: Timestamp,
    /// When the call ended; of entries of whole calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// Login of the caller, or SPIFFE id.
    #[serde(default)]
    pub user: String,
    /// Tenant of the call.
    #[serde(default)]
    pub tenant: String,
    /// Project of the call.
    #[serde(default)]
    pub project: Option<String>,
    /// Full method name.
    pub method: String,
    /// The message as JSON, without secrets.
    #[serde(default)]
    pub body: Option<String>,
    /// Address of the caller.
    #[serde(default)]
    pub source_ip: String,
    /// Status code of gRPC; of responses and whole calls.
    #[serde(default)]
    pub result_code: Option<i32>,
    /// Which part of the call.
    pub phase: AuditPhase,
    /// The rule of a site policy that decided the call, `policy/rule`; none where the contract's
    /// table did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How many calls it stands for: of refused calls of one caller in one minute, and of gaps.
    /// `None` means one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Over the entry and all before it, given by `apply`; none of entries from before the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<AuditHash>,
}

impl AuditEntry {
    /// What its hash covers.
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

    /// What is left of records that were dropped out of the middle of the chain, up to this one.
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

/// Where the chain of the audit trail that is kept begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditAnchor {
    /// The key: [`AuditAnchor::TRAIL`].
    pub name: String,
    /// The hash before the first entry: of the last one that was dropped, or of the beginning.
    pub hash: AuditHash,
    /// Entries with a higher sequence belong to the chain.
    pub sequence: u64,
    /// When the chain began.
    pub began: Timestamp,
    /// Entries of the chain that were dropped since.
    pub dropped: u64,
}

impl AuditAnchor {
    /// Name of the one anchor that there is.
    pub const TRAIL: &'static str = "trail";
}

/// How far the audit trail was sent to a place outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditExport {
    /// The place's name in the configuration.
    pub name: String,
    /// The last record that was sent.
    pub sequence: u64,
    /// Records up to here may be missing there: they were dropped before they could be sent.
    pub missed: u64,
    /// When that was noted.
    pub at: Timestamp,
}

/// What a client's key stands for: the same key and request give the same answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// Project of the request.
    pub project: ProjectId,
    /// The client's key.
    pub key: String,
    /// SHA-256 of the request.
    pub request: Digest,
    /// Machine that it got.
    pub machine: MachineId,
    /// Allocation that it got.
    pub allocation: AllocationId,
    /// Forgotten after this.
    pub expires_at: Timestamp,
}

/// Key of an [`Idempotency`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IdempotencyKey {
    /// Project of the request.
    pub project: ProjectId,
    /// The client's key.
    pub key: String,
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.project, self.key)
    }
}

impl fmt::Debug for CaRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaRecord")
            .field("id", &self.id)
            .field("sealed_key", &"<redacted>")
            .field("not_after", &self.not_after)
            .field("retired", &self.retired)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .field("sealed_key", &"<redacted>")
            .field("not_after", &self.not_after)
            .field("retired", &self.retired)
            .finish_non_exhaustive()
    }
}
