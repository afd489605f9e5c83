//! The chain of the audit trail: what a record's hash covers, so that the state machine and
//! whoever checks an export compute the same.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{AuditHash, Timestamp};

/// Prefix of the hashed bytes of a record, so that no hash of another thing is equal to one of a record.
const RECORD: &[u8] = b"metalmesh audit record 1\n";
/// The part of a call that a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditPhase {
    /// The request.
    Request,
    /// The outcome.
    Response,
    /// Both, in one record.
    Call,
    /// Of no call: records were dropped here, and the hash of the last of them is left.
    Dropped,
}

/// Method of the records that tell which gaps there are.
pub const RETENTION_METHOD: &str = "metalmesh/audit-retention";
/// Begins what is hashed of gaps.
const GAPS: &[u8] = b"metalmesh audit gaps 1\n";

/// The gaps of a trail, each by its last sequence, how many records were there, and the hash of
/// the last of them. Retention and those who check its record compute the same.
#[derive(Debug, Clone, Default)]
pub struct AuditGaps {
    hash: Sha256,
    number: u64,
}

impl AuditGaps {
    /// Adds the next one.
    pub fn add(&mut self, sequence: u64, count: u32, hash: &AuditHash) {
        self.hash.update(sequence.to_be_bytes());
        self.hash.update(count.to_be_bytes());
        self.hash.update(hash.bytes());
        self.number += 1;
    }

    /// `true` if there was none.
    pub const fn is_empty(&self) -> bool {
        self.number == 0
    }

    /// The text of the record.
    pub fn told(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(GAPS);
        hash.update(self.number.to_be_bytes());
        hash.update(self.hash.clone().finalize());
        let hash = AuditHash::new(hash.finalize().into());
        format!("{{\"gaps\":{},\"digest\":\"{hash}\"}}", self.number)
    }
}

/// The fields that a record's hash covers: all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditLine<'a> {
    /// Counts up over the whole trail.
    pub sequence: u64,
    /// Id of the call.
    pub id: &'a str,
    /// When it came.
    pub time: Timestamp,
    /// When it ended, of records of whole calls.
    pub ended: Option<Timestamp>,
    /// Login of the caller, or SPIFFE id.
    pub user: &'a str,
    /// Tenant of the call; empty without one.
    pub tenant: &'a str,
    /// Project of the call.
    pub project: Option<&'a str>,
    /// Full method name.
    pub method: &'a str,
    /// The message as JSON, without secrets.
    pub body: Option<&'a str>,
    /// Address of the caller.
    pub source_ip: &'a str,
    /// Status code of gRPC.
    pub result_code: Option<i32>,
    /// Which part of the call.
    pub phase: AuditPhase,
    /// The rule of a site policy that decided the call.
    pub rule: Option<&'a str>,
    /// How many calls it stands for.
    pub count: Option<u32>,
}

impl AuditLine<'_> {
    /// The record's hash behind a record with the hash `previous`.
    pub fn hash(&self, previous: &AuditHash) -> AuditHash {
        let mut hash = Sha256::new();
        hash.update(RECORD);
        hash.update(previous.bytes());
        hash.update(self.sequence.to_be_bytes());
        text(&mut hash, Some(self.id));
        number(&mut hash, Some(self.time.ms()));
        number(&mut hash, self.ended.map(Timestamp::ms));
        text(&mut hash, Some(self.user));
        text(&mut hash, Some(self.tenant));
        text(&mut hash, self.project);
        text(&mut hash, Some(self.method));
        text(&mut hash, self.body);
        text(&mut hash, Some(self.source_ip));
        let code = self.result_code.map(|code| u64::from(code.cast_unsigned()));
        number(&mut hash, code);
        hash.update([match self.phase {
            AuditPhase::Request => 1,
            AuditPhase::Response => 2,
            AuditPhase::Call => 3,
            AuditPhase::Dropped => 4,
        }]);
        // Records from before there were rules are hashed as they were then.
        if self.rule.is_some() {
            text(&mut hash, self.rule);
        }
        // The same holds of records from before they were counted. Its own mark keeps it from
        // being taken for the end of a rule.
        if let Some(count) = self.count {
            hash.update([2]);
            hash.update(count.to_be_bytes());
        }
        AuditHash::new(hash.finalize().into())
    }
}

/// Hashes presence, length and text, so that no two records are hashed from the same bytes.
fn text(hash: &mut Sha256, text: Option<&str>) {
    let Some(text) = text else {
        return hash.update([0]);
    };
    hash.update([1]);
    hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
    hash.update(text);
}

fn number(hash: &mut Sha256, number: Option<u64>) {
    hash.update([u8::from(number.is_some())]);
    hash.update(number.unwrap_or_default().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> AuditLine<'static> {
        AuditLine {
            sequence: 7,
            id: "0190",
            time: Timestamp::from_ms(5),
            ended: Some(Timestamp::from_ms(6)),
            user: "ada",
            tenant: "",
            project: None,
            method: "/a/B",
            body: Some("{}"),
            source_ip: "::1",
            result_code: Some(0),
            phase: AuditPhase::Call,
            rule: None,
            count: None,
        }
    }

    #[test]
    fn every_field_counts() {
        let start = AuditHash::anchor(0, Timestamp::ZERO);
        let hash = line().hash(&start);
        let moved = AuditLine {
            user: "ad",
            tenant: "a",
            ..line()
        };
        let others = [
            AuditLine {
                sequence: 8,
                ..line()
            },
            AuditLine {
                id: "0191",
                ..line()
            },
            AuditLine {
                time: Timestamp::from_ms(6),
                ..line()
            },
            AuditLine {
                ended: None,
                ..line()
            },
            AuditLine {
                project: Some(""),
                ..line()
            },
            AuditLine {
                method: "/a/C",
                ..line()
            },
            AuditLine {
                body: None,
                ..line()
            },
            AuditLine {
                source_ip: "::2",
                ..line()
            },
            AuditLine {
                result_code: None,
                ..line()
            },
            AuditLine {
                result_code: Some(-1),
                ..line()
            },
            AuditLine {
                phase: AuditPhase::Request,
                ..line()
            },
            AuditLine {
                rule: Some("night/console"),
                ..line()
            },
            AuditLine {
                rule: Some(""),
                ..line()
            },
            AuditLine {
                count: Some(1),
                ..line()
            },
            moved,
        ];
        for other in others {
            assert_ne!(other.hash(&start), hash, "{other:?}");
        }
        assert_ne!(line().hash(&hash), hash, "what was before counts");
    }

    /// Exports of today must still verify tomorrow.
    #[test]
    fn the_encoding_stays() {
        let start = AuditHash::anchor(0, Timestamp::ZERO);
        assert_eq!(
            start.to_string(),
            "14caa23c6eebd55382af44e42a16f190e363c8f44bfc37494455894534a38dda"
        );
        assert_eq!(
            line().hash(&start).to_string(),
            "2a3a55fcbb5d4ce6a839b36e4c3487c77de1e0fa2b94474b3312d1bdbba97576"
        );
    }

    #[test]
    fn text_reads_back() {
        let hash = line().hash(&AuditHash::anchor(1, Timestamp::ZERO));
        assert_eq!(hash.to_string().parse::<AuditHash>().unwrap(), hash);
        for bad in ["", "zz", &"+f".repeat(32), &"é".repeat(32)] {
            assert!(bad.parse::<AuditHash>().is_err(), "{bad}");
        }
    }
}
