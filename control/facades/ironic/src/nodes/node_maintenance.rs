//! `PUT` and `DELETE /nodes/{node}/maintenance`.

use control_state::{Availability, NodeMaintenance};

use super::node_checks::{check_may_withhold, locked};
use crate::access::SeenNode;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::patch::ObjectReader;
use crate::request::IronicCall;
use crate::route::HandlerFuture;

/// `PUT /nodes/{node}/maintenance`.
pub(super) fn set<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:set_maintenance").await?;
        let reason = match call.asked("reason") {
            Some(reason) => Some(reason),
            None => ObjectReader::new(call.body).text("reason")?,
        };
        let maintenance = NodeMaintenance {
            reason: reason.unwrap_or_default().to_owned(),
            since: call.now(),
        };
        write(call, &node, Some(maintenance)).await
    })
}

/// `DELETE /nodes/{node}/maintenance`.
pub(super) fn clear<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:clear_maintenance").await?;
        if node.machine.condition.state == Availability::Locked {
            return Err(locked(&node));
        }
        write(call, &node, None).await
    })
}

async fn write(
    call: &IronicCall<'_>,
    node: &SeenNode,
    maintenance: Option<NodeMaintenance>,
) -> Result<IronicAnswer, IronicError> {
    check_may_withhold(node, call.caller.project())?;
    let mut content = node.content();
    // A node that is not in maintenance needs no record to stay so.
    if content.maintenance.is_some() || maintenance.is_some() {
        content.maintenance = maintenance;
        let command = call.node_change(node, content);
        call.propose(command).await?;
    }
    Ok(IronicAnswer::accepted(None))
}
