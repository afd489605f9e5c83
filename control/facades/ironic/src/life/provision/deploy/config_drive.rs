//! The configuration drive of a deployment, as far as metalmesh has what it says.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proto_types::is_hostname;
use serde_json::Value;

use crate::error::IronicError;
use crate::patch::ObjectReader;

/// Parts of a drive.
const PARTS: [&str; 4] = ["meta_data", "network_data", "user_data", "vendor_data"];

/// Content of a configuration drive.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct ConfigDrive {
    /// User data, base64; empty means none.
    pub(super) userdata: String,
    /// Host name. `None` means that the drive names none.
    pub(super) hostname: Option<String>,
    /// Keys that may log in.
    pub(super) ssh_public_keys: Vec<String>,
}

impl fmt::Debug for ConfigDrive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigDrive")
            .field("hostname", &self.hostname)
            .field("userdata", &"<redacted>")
            .finish_non_exhaustive()
    }
}

impl ConfigDrive {
    /// Reads a drive: an object, its JSON as a text, or nothing. Its network data is not used: control
    /// assigns the addresses of a machine, and hammer configures them.
    ///
    /// # Errors
    /// 400 for the image of a file system, for an address, and for parts that metalmesh cannot use.
    pub(super) fn parse(drive: &Value) -> Result<Self, IronicError> {
        match drive {
            Value::Null => Ok(Self::default()),
            Value::Object(_) => Self::of_parts(drive),
            Value::String(text) if text.trim().is_empty() => Ok(Self::default()),
            Value::String(text) => Self::of_text(text),
            _ => Err(invalid("must be an object or a text")),
        }
    }

    fn of_text(text: &str) -> Result<Self, IronicError> {
        let text = text.trim();
        if text.starts_with('{') {
            let parts: Value = serde_json::from_str(text)
                .map_err(|error| invalid(&format!("is not JSON: {error}")))?;
            return Self::of_parts(&parts);
        }
        if text.contains("://") {
            return Err(invalid(
                "control fetches no addresses: send the drive's content, an object with meta_data and \
                 user_data",
            ));
        }
        Err(invalid(
            "the image of a file system is not used: send an object with meta_data and user_data \
             (baremetal node deploy --config-drive '{\"meta_data\": {..}, \"user_data\": \"..\"}')",
        ))
    }

    fn of_parts(drive: &Value) -> Result<Self, IronicError> {
        let parts = ObjectReader::new(drive);
        parts.check_known(&PARTS)?;
        for name in ["meta_data", "network_data", "vendor_data"] {
            if !matches!(parts.value(name), Value::Null | Value::Object(_)) {
                return Err(invalid(&format!("{name} must be an object")));
            }
        }
        if let Value::Object(vendor) = parts.value("vendor_data")
            && !vendor.is_empty()
        {
            let rule =
                "vendor_data is not used: put it into user_data, which cloud-init reads as well";
            return Err(invalid(rule));
        }
        let meta_data = parts.value("meta_data");
        Ok(Self {
            userdata: userdata(parts.value("user_data"))?,
            hostname: hostname(meta_data)?,
            ssh_public_keys: public_keys(&meta_data["public_keys"])?,
        })
    }
}

fn invalid(rule: &str) -> IronicError {
    IronicError::invalid(format!("configdrive: {rule}"))
}

/// User data in base64: a text as it is, other values as JSON.
fn userdata(data: &Value) -> Result<String, IronicError> {
    match data {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(STANDARD.encode(text)),
        Value::Object(fields) if fields.is_empty() => Ok(String::new()),
        Value::Array(items) if items.is_empty() => Ok(String::new()),
        Value::Object(_) | Value::Array(_) => Ok(STANDARD.encode(data.to_string())),
        Value::Bool(_) | Value::Number(_) => {
            Err(invalid("user_data must be a text, an object or a list"))
        }
    }
}

fn hostname(meta_data: &Value) -> Result<Option<String>, IronicError> {
    let named = ["hostname", "local-hostname"].map(|name| &meta_data[name]);
    let Some(named) = named.into_iter().find(|value| !value.is_null()) else {
        return Ok(None);
    };
    match named.as_str() {
        Some("") => Ok(None),
        Some(name) if is_hostname(name) => Ok(Some(name.to_owned())),
        _ => Err(invalid("meta_data/hostname must be a host name")),
    }
}

/// The keys of an object by name, or of a list.
fn public_keys(keys: &Value) -> Result<Vec<String>, IronicError> {
    let values: Vec<&Value> = match keys {
        Value::Null => Vec::new(),
        Value::Object(named) => named.values().collect(),
        Value::Array(keys) => keys.iter().collect(),
        _ => return Err(invalid("meta_data/public_keys must be an object or a list")),
    };
    let key = |value: &Value| {
        let text = value.as_str().map(|text| text.trim().to_owned());
        text.ok_or_else(|| invalid("each of meta_data/public_keys must be a text"))
    };
    values.into_iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drives_that_are_used() {
        let keys = ["ssh-ed25519 AAAA a".to_owned()];
        let drive = |userdata: &str, hostname: Option<&str>, keys: &[String]| ConfigDrive {
            userdata: STANDARD.encode(userdata),
            hostname: hostname.map(str::to_owned),
            ssh_public_keys: keys.to_vec(),
        };
        let by_metalsmith = json!({
            "meta_data": {
                "public_keys": {"0": "ssh-ed25519 AAAA a\n"},
                "uuid": "e1bb591f-4ea8-44fb-a82b-451f3847a868",
                "hostname": "web2",
                "files": [],
            },
            "network_data": {"links": []},
            "user_data": "#cloud-config\n{}",
        });
        for (value, expected) in [
            (Value::Null, ConfigDrive::default()),
            (json!(" "), ConfigDrive::default()),
            (json!({}), ConfigDrive::default()),
            (
                json!({"user_data": null, "meta_data": null}),
                ConfigDrive::default(),
            ),
            (
                json!({"user_data": [], "vendor_data": {}}),
                ConfigDrive::default(),
            ),
            (
                by_metalsmith.clone(),
                drive("#cloud-config\n{}", Some("web2"), &keys),
            ),
            (
                json!(by_metalsmith.to_string()),
                drive("#cloud-config\n{}", Some("web2"), &keys),
            ),
            (
                json!({"user_data": {"a": 1}}),
                drive("{\"a\":1}", None, &[]),
            ),
            (
                json!({"meta_data": {"public_keys": ["ssh-ed25519 AAAA a"], "hostname": ""}}),
                drive("", None, &keys),
            ),
            (
                json!({"meta_data": {"local-hostname": "a.example"}}),
                drive("", Some("a.example"), &[]),
            ),
        ] {
            assert_eq!(ConfigDrive::parse(&value), Ok(expected), "{value}");
        }
    }

    #[test]
    fn drives_that_are_refused() {
        for (value, part) in [
            (json!("H4sICDw0+base64"), "image of a file system"),
            (json!("https://c/drive.iso"), "fetches no addresses"),
            (json!("file:///etc/passwd"), "fetches no addresses"),
            (json!("{nonsense"), "is not JSON"),
            (json!([]), "must be an object or a text"),
            (json!({"files": []}), "'files' was unexpected"),
            (json!({"meta_data": []}), "meta_data must be an object"),
            (json!({"vendor_data": {"a": 1}}), "vendor_data is not used"),
            (json!({"user_data": 1}), "user_data must be a text"),
            (
                json!({"meta_data": {"hostname": "a b"}}),
                "must be a host name",
            ),
            (json!({"meta_data": {"hostname": 1}}), "must be a host name"),
            (
                json!({"meta_data": {"public_keys": "k"}}),
                "an object or a list",
            ),
            (json!({"meta_data": {"public_keys": [1]}}), "must be a text"),
        ] {
            let refused = ConfigDrive::parse(&value).unwrap_err();
            assert!(refused.text.contains(part), "{value}: {}", refused.text);
        }
    }
}
