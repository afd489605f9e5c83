//! The hardware that hammer reported.

use super::rights::may_use;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::inventory;

/// `GET /nodes/{node}/inventory`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:inventory:get").await?;
        if node.machine.boot_id.is_empty() {
            let record = format!("inventory record for node {}", node.id());
            return Err(IronicError::not_found("Node", &record));
        }
        // An owner does not see into a machine while it is leased, and not its BMC either.
        let is_bmc_shown = may_use(&node.machine, call.caller.project());
        Ok(IronicAnswer::ok(inventory(&node.machine, is_bmc_shown)))
    })
}
