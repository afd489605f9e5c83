//! Secrets in requests, which no record of a call keeps, and which are not stored in `driver_info`.

use serde_json::Value;

/// Parts of names whose values are secrets: those that OpenStack's own mask knows, and those of fields
/// that drivers of Ironic had up to 39.0.0. Names of users, protocols and files of keys are none.
const SECRET_WORDS: [&str; 20] = [
    "access_key",
    "admin_pass",
    "adminpass",
    "auth_key",
    "community",
    "configdrive",
    "credential",
    "encrypted_key",
    "fernetkey",
    "kg_key",
    "key_contents",
    "new_pass",
    "passphrase",
    "password",
    "priv_key",
    "private_key",
    "pswd",
    "secret",
    "token",
    "user_data",
];
/// The text in place of a secret, as Ironic shows it.
pub(crate) const MASK: &str = "******";

/// `true` if the value of a field of this name is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// A body without its secrets: fields by their names, operations of JSON Patch by their paths.
pub(crate) fn without_secrets(body: &Value) -> Value {
    match body {
        Value::Array(items) => items.iter().map(without_secrets).collect(),
        Value::Object(fields) => {
            let path = fields.get("path").and_then(Value::as_str);
            let is_secret_path = path.is_some_and(is_secret);
            let masked = fields.iter().map(|(name, value)| {
                let hides = is_secret(name) || (is_secret_path && name == "value");
                let value = if hides {
                    MASK.into()
                } else {
                    without_secrets(value)
                };
                (name.clone(), value)
            });
            Value::Object(masked.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Secrets of `driver_info` and `instance_info`, by driver.
    const SECRET_FIELDS: [&str; 34] = [
        "agent_secret_token",
        "amt_password",
        "cimc_password",
        "configdrive",
        "drac_password",
        "hashed_rescue_password",
        "iboot_password",
        "ilo_password",
        "image_pull_secret",
        "image_request_authorization_secret",
        "image_server_password",
        "ipmi_hex_kg_key",
        "ipmi_password",
        "irmc_password",
        "irmc_snmp_auth_password",
        "irmc_snmp_community",
        "irmc_snmp_priv_password",
        "msftocs_password",
        "novnc_secret_token",
        "oci_pull_secret",
        "redfish_password",
        "rescue_password",
        "seamicro_password",
        "snmp_auth_key",
        "snmp_auth_priv_password",
        "snmp_auth_prot_password",
        "snmp_community",
        "snmp_community_read",
        "snmp_community_write",
        "snmp_priv_key",
        "ssh_key_contents",
        "ssh_password",
        "ucs_password",
        "xclarity_password",
    ];
    /// Fields beside them that clients have to read.
    const PLAIN_FIELDS: [&str; 20] = [
        "ansible_key_file",
        "deploy_kernel",
        "ilo_address",
        "ipmi_address",
        "ipmi_cipher_suite",
        "ipmi_port",
        "ipmi_priv_level",
        "ipmi_username",
        "irmc_auth_method",
        "irmc_snmp_user",
        "redfish_address",
        "redfish_auth_type",
        "redfish_system_id",
        "redfish_username",
        "redfish_verify_ca",
        "snmp_auth_protocol",
        "snmp_outlet",
        "snmp_priv_protocol",
        "snmp_user",
        "ssh_key_filename",
    ];

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in SECRET_FIELDS {
            assert!(
                is_secret(name) && is_secret(&name.to_ascii_uppercase()),
                "{name}"
            );
            let masked = without_secrets(&json!({"driver_info": {name: "x"}}));
            assert_eq!(masked["driver_info"][name], MASK, "{name}");
        }
        for name in PLAIN_FIELDS {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn secrets_of_bodies_and_patches_are_masked() {
        for (body, expected) in [
            (
                json!({"target": "active", "configdrive": {"user_data": "x"}}),
                json!({"target": "active", "configdrive": MASK}),
            ),
            (
                json!([{"op": "add", "path": "/driver_info/redfish_password", "value": "x"}]),
                json!([{"op": "add", "path": "/driver_info/redfish_password", "value": MASK}]),
            ),
            (
                json!({"driver_info": {"ipmi_Password": "x", "ipmi_address": "10.0.0.1"}}),
                json!({"driver_info": {"ipmi_Password": MASK, "ipmi_address": "10.0.0.1"}}),
            ),
            (
                json!([{"op": "replace", "path": "/extra/a", "value": 1}]),
                json!([{"op": "replace", "path": "/extra/a", "value": 1}]),
            ),
            (Value::Null, Value::Null),
        ] {
            assert_eq!(without_secrets(&body), expected);
        }
    }
}
