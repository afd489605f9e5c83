//! The allocation that holds a node.

use std::sync::Arc;

use control_state::NodeAllocation;

use super::allocation_change::end;
use super::found_allocation::{allocation_of_node, is_permitted};
use crate::access::seen_node;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::allocation;

/// The rule for the end of an allocation.
const DELETE: &str = "baremetal:allocation:delete";

/// `GET /nodes/{node}/allocation`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let held = held(call).await?;
        Ok(IronicAnswer::ok(allocation(&held, call.base)))
    })
}

/// `DELETE /nodes/{node}/allocation`.
pub(super) fn delete<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let held = held(call).await?;
        if !is_permitted(call, DELETE, &held) {
            return Err(IronicError::forbidden(DELETE));
        }
        end(call, &held).await
    })
}

/// The allocation of the node of the path.
async fn held(call: &IronicCall<'_>) -> Result<Arc<NodeAllocation>, IronicError> {
    let found = call.read(|tables| {
        let ident = call.parameter("node");
        let node = seen_node(tables, call.policy, call.caller, ident)?;
        allocation_of_node(call, tables, &node).cloned()
    });
    found.await
}
