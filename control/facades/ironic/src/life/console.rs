//! The console, which metalmesh does not serve by this API.

use serde_json::json;

use super::refusals::unsupported;
use crate::answer::IronicAnswer;
use crate::request::IronicCall;
use crate::route::HandlerFuture;

/// `GET /nodes/{node}/states/console`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.node_for("baremetal:node:get_console").await?;
        let shown = json!({ "console_enabled": false, "console_info": null });
        Ok(IronicAnswer::ok(shown))
    })
}

/// `PUT /nodes/{node}/states/console`.
pub(super) fn set<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:set_console_state").await?;
        Err(unsupported(&node, "console"))
    })
}
