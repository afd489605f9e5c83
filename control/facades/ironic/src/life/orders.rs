//! Writes of the life of nodes.

use control_state::{BmcAction, NodeContent, OrderBmc};

use super::rights::order_project;
use crate::access::SeenNode;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::request::IronicCall;

/// Orders an action from the BMC of a node, once a rule permitted it.
///
/// # Errors
/// 409 for a project that does not control the machine now, and as the state refuses it: without a BMC,
/// while the machine is released, or is locked.
pub(super) async fn order(
    call: &IronicCall<'_>,
    node: &SeenNode,
    action: BmcAction,
) -> Result<(), IronicError> {
    let user = call.caller.project();
    let project = order_project(&node.machine, user)?;
    let op = OrderBmc {
        machine: node.id(),
        project,
        user,
        action,
        description: String::new(),
    };
    call.propose(op).await.map(drop)
}

/// Writes the fields of a node, once a rule permitted it.
///
/// # Errors
/// 409 if they were changed since the node was read.
pub(super) async fn write_content(
    call: &IronicCall<'_>,
    node: &SeenNode,
    content: NodeContent,
) -> Result<(), IronicError> {
    let op = call.node_change(node, content);
    call.propose(op).await.map(drop)
}

/// 202, and the place where the states of the call's node are.
pub(super) fn accepted(call: &IronicCall<'_>) -> IronicAnswer {
    let node = call.parameter("node");
    IronicAnswer::accepted(Some(call.link(&format!("/nodes/{node}/states"))))
}
