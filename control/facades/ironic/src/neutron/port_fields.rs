//! The fields of a port that a request writes.

use std::net::IpAddr;

use control_state::JsonFields;
use proto_types::{NetworkId, ProjectId};
use serde_json::{Map, Value};

use crate::error::IronicError;

/// Longest text of a field, characters.
const TEXT_LEN_MAX: usize = 255;
/// Most addresses of a port.
const ADDRESSES_MAX: usize = 16;
/// Fields that are stored as they are.
const TEXTS: [&str; 5] = [
    "name",
    "description",
    "binding:host_id",
    "device_id",
    "device_owner",
];

/// An address that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WantedAddress {
    /// Id of its subnet. `None` means the one that has the address.
    pub(super) subnet: Option<String>,
    /// The address. `None` means any.
    pub(super) ip: Option<IpAddr>,
}

/// The fields of a port that a request names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WrittenPort {
    /// Texts, as they are stored.
    pub(super) texts: JsonFields,
    /// The network.
    pub(super) network: Option<NetworkId>,
    /// The project that it belongs to.
    pub(super) project: Option<ProjectId>,
    /// Its addresses.
    pub(super) addresses: Option<Vec<WantedAddress>>,
}

impl WrittenPort {
    /// Reads `{"port": {...}}`.
    ///
    /// # Errors
    /// 400 for a field that is malformed, or that ports do not have.
    pub(super) fn parse(body: &Value) -> Result<Self, IronicError> {
        let port = body.get("port").and_then(Value::as_object);
        let Some(port) = port else {
            let text = "the body must be an object with the field \"port\"";
            return Err(IronicError::invalid(text));
        };
        let mut written = Self::default();
        for (name, value) in port {
            written.read(name, value)?;
        }
        Ok(written)
    }

    fn read(&mut self, name: &str, value: &Value) -> Result<(), IronicError> {
        match name {
            text if TEXTS.contains(&text) => {
                let value = Value::from(text_of(name, value)?);
                self.texts.insert(name.to_owned(), value.to_string());
            }
            "network_id" => self.network = Some(parsed(name, value)?),
            "project_id" | "tenant_id" if value.is_null() => {}
            "project_id" | "tenant_id" => self.project = Some(parsed(name, value)?),
            "fixed_ips" => self.addresses = Some(addresses(value)?),
            "admin_state_up" => only(name, value, &[Value::Bool(true)])?,
            "binding:vnic_type" => only(name, value, &["baremetal".into(), "normal".into()])?,
            _ => {
                let text = format!("Unrecognized attribute(s) '{name}'");
                return Err(IronicError::invalid(text));
            }
        }
        Ok(())
    }
}

fn refused(name: &str, rule: &str) -> IronicError {
    IronicError::invalid(format!("{name}: {rule}"))
}

fn text_of<'v>(name: &str, value: &'v Value) -> Result<&'v str, IronicError> {
    if value.is_null() {
        return Ok("");
    }
    let text = value
        .as_str()
        .ok_or_else(|| refused(name, "must be a text"))?;
    if text.chars().count() > TEXT_LEN_MAX {
        let rule = format!("must have at most {TEXT_LEN_MAX} characters");
        return Err(refused(name, &rule));
    }
    Ok(text)
}

fn parsed<T>(name: &str, value: &Value) -> Result<T, IronicError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let text = text_of(name, value)?;
    let parsed = text.parse::<T>();
    parsed.map_err(|error| refused(name, &error.to_string()))
}

fn only(name: &str, value: &Value, allowed: &[Value]) -> Result<(), IronicError> {
    if value.is_null() || allowed.contains(value) {
        return Ok(());
    }
    let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    Err(refused(name, &format!("must be {}", allowed.join(" or "))))
}

fn addresses(value: &Value) -> Result<Vec<WantedAddress>, IronicError> {
    let name = "fixed_ips";
    let Some(list) = value.as_array() else {
        return Err(refused(name, "must be a list of objects"));
    };
    if list.len() > ADDRESSES_MAX {
        let rule = format!("must have at most {ADDRESSES_MAX} entries");
        return Err(refused(name, &rule));
    }
    let objects = list.iter().map(|entry| {
        let entry = entry.as_object();
        let entry = entry.ok_or_else(|| refused(name, "must be a list of objects"))?;
        address(entry)
    });
    objects.collect()
}

fn address(entry: &Map<String, Value>) -> Result<WantedAddress, IronicError> {
    let mut wanted = WantedAddress {
        subnet: None,
        ip: None,
    };
    for (name, value) in entry {
        match name.as_str() {
            "subnet_id" => wanted.subnet = Some(text_of("fixed_ips.subnet_id", value)?.to_owned()),
            "ip_address" => wanted.ip = Some(parsed("fixed_ips.ip_address", value)?),
            other => {
                let rule = format!("\"{other}\" is no field of an address");
                return Err(refused("fixed_ips", &rule));
            }
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_of_metalsmith_are_read() {
        let body = json!({"port": {
            "network_id": "internet",
            "name": "web1-internet",
            "binding:host_id": "1ab63b9e-66d7-4cd7-8618-dddd0f9f7881",
            "fixed_ips": [{"ip_address": "192.0.2.9", "subnet_id": "internet_192.0.2.0_24"}],
        }});
        let written = WrittenPort::parse(&body).unwrap();
        assert_eq!(written.network, Some("internet".parse().unwrap()));
        assert_eq!(written.texts["name"], "\"web1-internet\"");
        assert_eq!(written.texts.len(), 2);
        let address = WantedAddress {
            subnet: Some("internet_192.0.2.0_24".to_owned()),
            ip: Some(IpAddr::from([192, 0, 2, 9])),
        };
        assert_eq!(written.addresses, Some(vec![address]));
    }

    #[test]
    fn malformed_ports_are_refused_by_field() {
        let long = "x".repeat(TEXT_LEN_MAX + 1);
        let many = vec![json!({}); ADDRESSES_MAX + 1];
        for (body, named) in [
            (json!(null), "\"port\""),
            (json!({"port": []}), "\"port\""),
            (
                json!({"port": {"mac_address": "02:00:00:00:00:01"}}),
                "'mac_address'",
            ),
            (json!({"port": {"name": 7}}), "name: must be a text"),
            (json!({"port": {"name": long}}), "at most 255"),
            (json!({"port": {"network_id": "x"}}), "network_id"),
            (json!({"port": {"project_id": "x"}}), "project_id"),
            (json!({"port": {"admin_state_up": false}}), "must be true"),
            (json!({"port": {"fixed_ips": {}}}), "list of objects"),
            (json!({"port": {"fixed_ips": [7]}}), "list of objects"),
            (json!({"port": {"fixed_ips": many}}), "at most 16"),
            (
                json!({"port": {"fixed_ips": [{"ip_address": "x"}]}}),
                "ip_address",
            ),
            (json!({"port": {"fixed_ips": [{"a": "x"}]}}), "no field"),
        ] {
            let refused = WrittenPort::parse(&body).unwrap_err();
            assert_eq!(refused.status, http::StatusCode::BAD_REQUEST, "{body}");
            assert!(refused.text.contains(named), "{body}: {}", refused.text);
        }
    }
}
