//! Redacts requests for the audit trail, and maps audit entries to tenants.

use control_state::AuditEntry;
use proto_types::ProjectId;

/// Longest request body in an audit record, bytes; a longer one is truncated.
const BODY_BYTES_MAX: usize = 4096;
/// JSON names of fields that may hold secrets, in any message.
const SECRET_FIELDS: [&str; 10] = [
    "userdata",
    "userData",
    "password",
    "oldPassword",
    "newPassword",
    "secret",
    "authKey",
    "consolePassword",
    "superUserPassword",
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
    use prost_reflect::Kind;

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
    fn a_field_that_is_named_like_a_secret_is_taken_out() {
        let words = [
            "password",
            "secret",
            "token",
            "userdata",
            "authkey",
            "privatekey",
        ];
        // A digest of what was given.
        let others = ["userDataSha256"];
        let mut shown = std::collections::BTreeSet::new();
        for message in proto_public::pool().all_messages() {
            for field in message.fields() {
                let is_text = matches!(field.kind(), Kind::String | Kind::Bytes);
                let name = field.json_name().to_owned();
                let plain = name.to_lowercase();
                let is_secret = words.iter().any(|word| plain.contains(word));
                let is_known = SECRET_FIELDS.contains(&&*name) || others.contains(&&*name);
                if is_text && is_secret && !is_known {
                    shown.insert(format!("{}: {name}", message.full_name()));
                }
            }
        }
        assert!(shown.is_empty(), "shown in the audit trail: {shown:#?}");
    }

    #[test]
    fn bodies_are_bounded() {
        let long = format!(r#"{{"name":"{}"}}"#, "\u{e4}".repeat(BODY_BYTES_MAX));
        assert!(redacted(long.as_bytes()).len() <= BODY_BYTES_MAX + 4);
    }
}
