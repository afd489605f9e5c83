//! What the audit trail says of requests, and who may see it.

use control_state::AuditEntry;
use proto_types::ProjectId;

/// Longest body that is kept, in bytes.
const BODY_BYTES_MAX: usize = 4096;
/// Fields that may hold secrets, in any message, as JSON names them.
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

/// A request without its secrets, bounded; the time of a project id stays whole.
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

/// Takes secrets out, wherever they are.
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

/// Whether an entry belongs to a tenant: its own, or one of its projects'.
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
