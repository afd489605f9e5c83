//! The exported forms of an audit record.

use std::time::Duration;

use control_state::AuditEntry;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tonic::Code;

/// Syslog facility "log audit" (RFC 5424, table 1).
const FACILITY: u8 = 13;
/// MSGID in the syslog header.
const MESSAGE_ID: &str = "audit";

/// The severity of a call, by its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// The call succeeded, or has not ended.
    Information,
    /// The call failed.
    Notice,
    /// The caller was not authorised.
    Warning,
}

impl Severity {
    /// The severity of a record.
    pub(super) fn of(entry: &AuditEntry) -> Self {
        match entry.result_code.map(Code::from_i32) {
            None | Some(Code::Ok) => Self::Information,
            Some(Code::PermissionDenied | Code::Unauthenticated) => Self::Warning,
            Some(_) => Self::Notice,
        }
    }

    /// Severity in syslog (RFC 5424, table 2).
    fn syslog(self) -> u8 {
        match self {
            Self::Information => 6,
            Self::Notice => 5,
            Self::Warning => 4,
        }
    }

    /// Number and name in OpenTelemetry's log data model.
    pub(super) fn otel(self) -> (u8, &'static str) {
        match self {
            Self::Information => (9, "INFO"),
            Self::Notice => (10, "INFO2"),
            Self::Warning => (13, "WARN"),
        }
    }
}

/// The record as one JSON object, with the field names of `metalmesh audit export`. The hash chain of
/// exported records can be verified in the same way.
pub(super) fn json(entry: &AuditEntry) -> Value {
    let mut out = json!({
        "sequence": entry.sequence,
        "id": entry.id,
        "time_ms": entry.time.ms(),
        "user": entry.user,
        "tenant": entry.tenant,
        "method": entry.method,
        "source_ip": entry.source_ip,
        "part": entry.phase,
    });
    let optional = [
        ("ended_ms", entry.ended.map(|ended| ended.ms().into())),
        ("project", entry.project.clone().map(Value::from)),
        ("body", entry.body.clone().map(Value::from)),
        ("result_code", entry.result_code.map(Value::from)),
        ("rule", entry.rule.clone().map(Value::from)),
        ("count", entry.count.map(Value::from)),
        ("hash", entry.hash.map(|hash| hash.to_string().into())),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            out[name] = value;
        }
    }
    out
}

/// The record as a syslog message (RFC 5424): a header and the JSON object.
pub(super) fn syslog(entry: &AuditEntry, host: &str, process: u32) -> String {
    let priority = FACILITY * 8 + Severity::of(entry).syslog();
    let time = OffsetDateTime::UNIX_EPOCH + Duration::from_millis(entry.time.ms());
    let time = time.format(&Rfc3339).unwrap_or_else(|_| "-".to_owned());
    let record = json(entry);
    format!("<{priority}>1 {time} {host} metalmeshd {process} {MESSAGE_ID} - {record}")
}

/// A host name in the form that the header allows: at most 255 visible ASCII characters, or `-`.
pub(super) fn header_host(name: &str) -> String {
    let plain: String = name
        .trim()
        .chars()
        .filter(char::is_ascii_graphic)
        .take(255)
        .collect();
    if plain.is_empty() {
        "-".to_owned()
    } else {
        plain
    }
}

#[cfg(test)]
pub(super) mod tests {
    use control_state::AuditPhase;
    use proto_types::Timestamp;

    use super::*;

    pub(in crate::export) fn entry(sequence: u64) -> AuditEntry {
        AuditEntry {
            sequence,
            id: "0192".to_owned(),
            time: Timestamp::from_ms(1_700_000_000_123),
            ended: Some(Timestamp::from_ms(1_700_000_000_200)),
            user: "ada".to_owned(),
            tenant: "acme".to_owned(),
            project: None,
            method: "/metalstack.api.v2.IPService/Create".to_owned(),
            body: Some("{\"name\":\"\u{fc}\\n\"}".to_owned()),
            source_ip: "192.0.2.1".to_owned(),
            result_code: Some(0),
            phase: AuditPhase::Call,
            rule: None,
            count: None,
            hash: None,
        }
    }

    #[test]
    fn a_message_of_syslog() {
        let text = syslog(&entry(7), "node-1", 42);
        let head = "<110>1 2023-11-14T22:13:20.123Z node-1 metalmeshd 42 audit - {";
        assert!(text.starts_with(head), "{text}");
        // One line, whatever the request held.
        assert!(!text.contains('\n'));
        let json: Value = serde_json::from_str(&text[head.len() - 1..]).unwrap();
        assert_eq!(json["sequence"], 7);
        assert_eq!(json["body"], "{\"name\":\"\u{fc}\\n\"}");
        assert!(json.get("project").is_none());
    }

    #[test]
    fn severities() {
        for (code, severity) in [
            (None, Severity::Information),
            (Some(0), Severity::Information),
            (Some(5), Severity::Notice),
            (Some(7), Severity::Warning),
            (Some(16), Severity::Warning),
        ] {
            let entry = AuditEntry {
                result_code: code,
                ..entry(1)
            };
            assert_eq!(Severity::of(&entry), severity, "{code:?}");
        }
    }

    #[test]
    fn hosts() {
        assert_eq!(header_host("node-1.example\n"), "node-1.example");
        assert_eq!(header_host(" \u{fc}\t"), "-");
    }
}
