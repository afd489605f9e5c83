//! The firmware's settings and versions.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{asked_fields, asked_flag};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{bios_setting, bios_settings, firmware};

/// The rule for settings.
const BIOS: &str = "baremetal:node:bios:get";
/// Fields of settings in lists.
const SETTING_DEFAULT: [&str; 2] = ["name", "value"];
/// All fields of settings.
const SETTING_FIELDS: [&str; 11] = [
    "name",
    "value",
    "attribute_type",
    "allowable_values",
    "lower_bound",
    "max_length",
    "min_length",
    "read_only",
    "reset_required",
    "unique",
    "upper_bound",
];
/// Fields of components.
const COMPONENT_FIELDS: [&str; 7] = [
    "component",
    "initial_version",
    "current_version",
    "last_version_flashed",
    "vendor",
    "model",
    "serial_number",
];

/// `GET /nodes/{node}/bios`.
pub(super) fn list_bios<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(BIOS).await?;
        let asked = asked_fields(call, &SETTING_FIELDS)?;
        let is_detailed = asked_flag(call, "detail")?.unwrap_or(false);
        let default = if is_detailed {
            SETTING_FIELDS.as_slice()
        } else {
            SETTING_DEFAULT.as_slice()
        };
        let fields = fields(asked.as_deref(), is_detailed, default)?;
        let machine = &node.machine;
        let settings = bios_settings(machine).into_iter();
        let settings =
            settings.map(|(name, value)| bios_setting(machine, call.base, name, value, &fields));
        let settings: Vec<Value> = settings.collect();
        Ok(IronicAnswer::ok(json!({ "bios": settings })))
    })
}

/// `GET /nodes/{node}/bios/{setting}`.
pub(super) fn show_bios<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(BIOS).await?;
        let machine = &node.machine;
        let wanted = call.parameter("setting");
        let mut settings = bios_settings(machine).into_iter();
        let Some((name, value)) = settings.find(|(name, _)| *name == wanted) else {
            let text = format!("Node {} doesn't have a BIOS setting '{wanted}'", machine.id);
            return Err(IronicError::new(StatusCode::NOT_FOUND, text));
        };
        let setting = bios_setting(machine, call.base, name, value, &SETTING_FIELDS);
        let shown = Map::from_iter([(name.to_owned(), setting)]);
        Ok(IronicAnswer::ok(Value::Object(shown)))
    })
}

/// `GET /nodes/{node}/firmware`.
pub(super) fn list_firmware<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:firmware:get").await?;
        let asked = asked_fields(call, &COMPONENT_FIELDS)?;
        let is_detailed = asked_flag(call, "detail")?.unwrap_or(false);
        let fields = fields(asked.as_deref(), is_detailed, &COMPONENT_FIELDS)?;
        let components = firmware(&node.machine, call.version, &fields);
        Ok(IronicAnswer::ok(json!({ "firmware": components })))
    })
}

/// The fields of each object: those that a request names, else the default ones.
///
/// # Errors
/// 400 for a request that names fields and asks for all of them.
fn fields<'a>(
    asked: Option<&'a [String]>,
    is_detailed: bool,
    default: &[&'a str],
) -> Result<Vec<&'a str>, IronicError> {
    let Some(asked) = asked else {
        return Ok(default.to_vec());
    };
    if is_detailed {
        let text = "Can't fetch a subset of fields with 'detail' set";
        return Err(IronicError::invalid(text));
    }
    Ok(asked.iter().map(String::as_str).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_requests() {
        let asked = ["value".to_owned()];
        let default = ["name", "value"];
        for (asked, is_detailed, expected) in [
            (None, false, Some(vec!["name", "value"])),
            (None, true, Some(vec!["name", "value"])),
            (Some(asked.as_slice()), false, Some(vec!["value"])),
            (Some(asked.as_slice()), true, None),
        ] {
            assert_eq!(fields(asked, is_detailed, &default).ok(), expected);
        }
    }
}
