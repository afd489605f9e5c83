//! Secrets of `driver_info`, which are not stored: the agents of BMCs have them.

use serde_json::Value;

use crate::secrets::{MASK, without_secrets};

/// Parts of names of secrets that only drivers of Ironic have.
const DRIVER_SECRETS: [&str; 4] = ["auth_key", "priv_key", "kg_key", "community"];

/// The value with masks in place of its secrets, as it is stored.
pub(super) fn without_driver_secrets(driver_info: &Value) -> Value {
    let mut masked = without_secrets(driver_info);
    if let Value::Object(fields) = &mut masked {
        for (name, value) in fields.iter_mut() {
            let name = name.to_ascii_lowercase();
            if DRIVER_SECRETS.iter().any(|part| name.contains(part)) {
                *value = MASK.into();
            }
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_by_their_names() {
        let written = json!({
            "redfish_address": "10.0.0.1",
            "redfish_password": "a",
            "ipmi_hex_kg_key": "b",
            "snmp_auth_key": "c",
            "SNMP_Priv_Key": "d",
            "snmp_community": "e",
            "nested": {"token": "f", "port": 1},
        });
        let expected = json!({
            "redfish_address": "10.0.0.1",
            "redfish_password": MASK,
            "ipmi_hex_kg_key": MASK,
            "snmp_auth_key": MASK,
            "SNMP_Priv_Key": MASK,
            "snmp_community": MASK,
            "nested": {"token": MASK, "port": 1},
        });
        assert_eq!(without_driver_secrets(&written), expected);
        assert_eq!(without_driver_secrets(&Value::Null), Value::Null);
    }
}
