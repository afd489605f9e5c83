//! Hardware types, which are drivers to clients.

use control_oslo::PolicyTarget;
use control_state::ControlNode;
use http::StatusCode;
use serde_json::{Value, json};

use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{asked_fields, asked_flag, selected};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view;

/// Properties of `driver_info` that mean something, by name. Others are stored, except secrets, and have
/// no effect: the BMC's agent has the credentials.
const PROPERTIES: [(&str, &str); 1] = [(
    "metalmesh_bmc_address",
    "Address of the BMC, as its agent reported it. Read only.",
)];

/// `GET /drivers`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let is_detailed = asked_flag(call, "detail")?.unwrap_or(false);
        if is_detailed && call.asked("fields").is_some() {
            let text = "Can not specify ?detail=True and fields in the same request.";
            return Err(IronicError::invalid(text));
        }
        call.require("baremetal:driver:get", &PolicyTarget::none())?;
        let fields = fields(call)?;
        let names = match call.asked("type") {
            None | Some("dynamic") => &view::HARDWARE_TYPES[..],
            Some("classic") => &[],
            Some(_) => {
                let text = "\"type\" filter must be one of \"classic\" or \"dynamic\"";
                return Err(IronicError::invalid(text));
            }
        };
        let hosts = hosts(call).await?;
        let is_detailed = is_detailed || fields.is_some();
        let drivers: Vec<Value> = names
            .iter()
            .map(|name| view::driver(name, &hosts, call.base, is_detailed))
            .map(|driver| selected(driver, fields.as_deref()))
            .collect();
        Ok(IronicAnswer::ok(json!({ "drivers": drivers })))
    })
}

/// `GET /drivers/{driver}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:driver:get", &PolicyTarget::none())?;
        let fields = fields(call)?;
        let name = driver(call)?;
        let hosts = hosts(call).await?;
        let shown = view::driver(name, &hosts, call.base, true);
        Ok(IronicAnswer::ok(selected(shown, fields.as_deref())))
    })
}

/// `GET /drivers/{driver}/properties`.
pub(super) fn properties<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:driver:get_properties", &PolicyTarget::none())?;
        driver(call)?;
        let properties = PROPERTIES.iter();
        let properties = properties.map(|(name, about)| ((*name).to_owned(), (*about).into()));
        Ok(IronicAnswer::ok(Value::Object(properties.collect())))
    })
}

/// `GET /drivers/{driver}/raid/logical_disk_properties`.
pub(super) fn raid_properties<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let rule = "baremetal:driver:get_raid_logical_disk_properties";
        call.require(rule, &PolicyTarget::none())?;
        let name = driver(call)?;
        let refused = IronicError::unsupported(name, "raid");
        Err(IronicError::new(StatusCode::NOT_FOUND, refused.text))
    })
}

/// `GET /drivers/{driver}/vendor_passthru/methods`.
pub(super) fn passthru_methods<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:driver:vendor_passthru", &PolicyTarget::none())?;
        driver(call)?;
        Ok(IronicAnswer::ok(json!({})))
    })
}

/// Every verb of `/drivers/{driver}/vendor_passthru`.
pub(super) fn passthru<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:driver:vendor_passthru", &PolicyTarget::none())?;
        Err(IronicError::unsupported(driver(call)?, "vendor_passthru"))
    })
}

/// The hardware type of the path.
fn driver(call: &IronicCall<'_>) -> Result<&'static str, IronicError> {
    let name = call.parameter("driver");
    let mut known = view::HARDWARE_TYPES.into_iter();
    let found = known.find(|known| *known == name);
    found.ok_or_else(|| {
        let text = format!("Could not find the following driver(s) or hardware type(s): {name}.");
        IronicError::new(StatusCode::NOT_FOUND, text)
    })
}

fn fields(call: &IronicCall<'_>) -> Result<Option<Vec<String>>, IronicError> {
    let sample = view::driver("", &[], "", true);
    let known: Vec<&str> = match &sample {
        Value::Object(fields) => fields.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    asked_fields(call, &known)
}

/// The host names of the control nodes.
async fn hosts(call: &IronicCall<'_>) -> Result<Vec<String>, IronicError> {
    let hosts = call.read(|tables| {
        let all = tables.all::<ControlNode>();
        let members = all.filter(|node| node.joined_at.is_some() && node.removed_at.is_none());
        Ok(members.map(|node| view::conductor_name(node.id)).collect())
    });
    hosts.await
}
