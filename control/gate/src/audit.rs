//! Redacts requests for the audit trail, and maps audit entries to tenants.

use control_state::AuditEntry;
use proto_types::ProjectId;

/// Longest request body in an audit record, bytes; a longer one is truncated.
const BODY_BYTES_MAX: usize = 4096;
/// JSON names of fields that may hold secrets, in any message.
const SECRET_FIELDS: [&str; 8] = [
    "userdata",
    "password",
    "oldPassword",
    "newPassword",
    "secret",
    "authKey",
    "consolePassword",
    "token",
];

/// The request as JSON, without secrets and at most `BODY_BYTES_MAX` bytes. Empty if it is not
/// JSON.
pub fn redacted(json: &[u8]) -> String {
    let Ok(mut value) = serde_json::from_slice(json) else {
        return String::new();
    };
    redact(&mut value);
    let mut text = value.to_string();
    if text.len() > BODY_BYTES_MAX {
        let mut end = BODY_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('\u{2026}');
    }
    text
}

/// Replaces secrets at any depth.
pub fn redact(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                if SECRET_FIELDS.contains(&name.as_str()) && !field.is_object() {
                    *field = "<redacted>".into();
                } else {
                    redact(field);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

/// `true` if the entry is about the tenant itself or one of its projects.
pub fn belongs_to(
    entry: &AuditEntry,
    tables: &control_state::Tables,
    tenant: &proto_types::TenantId,
) -> bool {
    let project = entry
        .project
        .as_ref()
        .and_then(|id| id.parse::<ProjectId>().ok());
    entry.tenant == tenant.as_str()
        || project
            .and_then(|id| tables.get::<control_state::Project>(&id))
            .is_some_and(|project| project.tenant == *tenant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out() {
        let text = redacted(br#"{"name":"m","userdata":"cGFzcw==","a":[{"password":"x"}]}"#);
        assert!(
            !text.contains("cGFzcw") && !text.contains("\"x\""),
            "{text}"
        );
        assert!(text.contains("\"name\":\"m\""));
    }

    #[test]
    fn bodies_are_bounded() {
        let long = format!(r#"{{"name":"{}"}}"#, "\u{e4}".repeat(BODY_BYTES_MAX));
        assert!(redacted(long.as_bytes()).len() <= BODY_BYTES_MAX + 4);
    }
}
