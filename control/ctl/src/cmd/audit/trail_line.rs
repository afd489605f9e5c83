//! Records of the trail as an export writes them.

use anyhow::{Result, bail};
use proto_public::metalmesh::admin::v1::{AuditAnchor, AuditPart, AuditRecord};
use proto_types::{AuditHash, AuditLine, AuditPhase, Timestamp};
use serde::{Deserialize, Serialize};

/// The start of the hash chain over the records that are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChainAnchor {
    #[serde(with = "as_text")]
    pub(super) hash: AuditHash,
    pub(super) sequence: u64,
    pub(super) began_ms: u64,
    pub(super) dropped: u64,
}

/// A record with its hash, as one line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrailLine {
    pub(super) sequence: u64,
    pub(super) id: String,
    pub(super) time_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended_ms: Option<u64>,
    pub(super) user: String,
    pub(super) tenant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) project: Option<String>,
    pub(super) method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<String>,
    pub(super) source_ip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result_code: Option<i32>,
    pub(super) part: AuditPhase,
    /// The rule of a site policy that decided the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<String>,
    /// Number of calls or dropped records that it stands for. `None` means one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hash: Option<String>,
}

impl ChainAnchor {
    pub(super) fn read(anchor: &AuditAnchor) -> Result<Self> {
        Ok(Self {
            hash: AuditHash::try_from(anchor.hash.as_slice())?,
            sequence: anchor.sequence,
            began_ms: anchor.began_ms,
            dropped: anchor.dropped,
        })
    }
}

impl TrailLine {
    pub(super) fn read(record: AuditRecord) -> Result<Self> {
        let part = match record.part() {
            AuditPart::Request => AuditPhase::Request,
            AuditPart::Response => AuditPhase::Response,
            AuditPart::Call => AuditPhase::Call,
            AuditPart::Dropped => AuditPhase::Dropped,
            AuditPart::Unspecified => bail!(
                "record {} is of a kind that this version does not know; update metalmesh",
                record.sequence
            ),
        };
        let hash = (!record.hash.is_empty()).then(|| AuditHash::try_from(record.hash.as_slice()));
        Ok(Self {
            sequence: record.sequence,
            id: record.id,
            time_ms: record.time_ms,
            ended_ms: record.ended_ms,
            user: record.user,
            tenant: record.tenant,
            project: record.project,
            method: record.method,
            body: record.body,
            source_ip: record.source_ip,
            result_code: record.result_code,
            part,
            rule: record.rule,
            count: record.count,
            hash: hash.transpose()?.map(|hash| hash.to_string()),
        })
    }

    /// The record as its hash covers it.
    pub(super) fn line(&self) -> AuditLine<'_> {
        AuditLine {
            sequence: self.sequence,
            id: &self.id,
            time: Timestamp::from_ms(self.time_ms),
            ended: self.ended_ms.map(Timestamp::from_ms),
            user: &self.user,
            tenant: &self.tenant,
            project: self.project.as_deref(),
            method: &self.method,
            body: self.body.as_deref(),
            source_ip: &self.source_ip,
            result_code: self.result_code,
            phase: self.part,
            rule: self.rule.as_deref(),
            count: self.count,
        }
    }
}

mod as_text {
    use proto_types::AuditHash;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(hash: &AuditHash, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(hash)
    }
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<AuditHash, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
