//! Orders to BMCs, which the contract calls tasks.

use control_state::{BmcOrder, OrderPurpose, OrderState};
use proto_public::admin::v2::{TaskInfo, TaskState};

use super::{duration, time};

/// All orders are in one queue.
pub const QUEUE: &str = "default";
/// Type of all tasks.
const TYPE: &str = "machine-bmc-command";

/// An order for the wire.
pub fn task(order: &BmcOrder) -> TaskInfo {
    let state = match order.state {
        // Agents of the mesh are told all open orders; only a stream takes one.
        OrderState::Open if order.taken_by.is_none() => TaskState::Pending,
        OrderState::Open => TaskState::Active,
        OrderState::Done => TaskState::Completed,
        OrderState::Failed | OrderState::Expired | OrderState::Cancelled => TaskState::Archived,
    };
    let error = match (order.state, &order.error) {
        (_, Some(error)) => error.clone(),
        (OrderState::Expired, None) => "the BMC agent did not answer in time".to_owned(),
        (OrderState::Cancelled, None) => "overtaken by a change of plan".to_owned(),
        _ => String::new(),
    };
    let by = match &order.purpose {
        OrderPurpose::User(user) => user.as_str(),
        OrderPurpose::Life | OrderPurpose::Join => "metalmesh",
    };
    let payload = serde_json::json!({
        "machine": order.machine.to_string(),
        "command": order.action.as_str(),
        "by": by,
    });
    let failed = matches!(order.state, OrderState::Failed | OrderState::Expired);
    TaskInfo {
        id: order.id.to_string(),
        queue: QUEUE.to_owned(),
        r#type: TYPE.to_owned(),
        payload: payload.to_string().into_bytes(),
        state: state.into(),
        last_error: error,
        last_failed_at: order.finished_at.filter(|_| failed).and_then(time),
        timeout: Some(duration(order.deadline.since_ms(order.created_at))),
        deadline: time(order.deadline),
        completed_at: order.finished_at.filter(|_| !failed).and_then(time),
        ..Default::default()
    }
}
