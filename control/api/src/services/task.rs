//! Tasks: the orders to BMCs, as the contract shows work that goes on in the background.

use std::sync::Arc;

use control_front::listing::listing;
use control_state::{BmcOrder, DeleteBmcOrder, OrderPurpose, OrderState, StateError, Tables};
use proto_public::admin::v2::task_service_server::TaskService;
use proto_public::admin::v2::{
    TaskInfo, TaskServiceDeleteRequest, TaskServiceDeleteResponse, TaskServiceGetRequest,
    TaskServiceGetResponse, TaskServiceListRequest, TaskServiceListResponse,
    TaskServiceQueuesRequest, TaskServiceQueuesResponse, TaskState,
};
use proto_types::OrderId;
use tonic::Request;

use super::{Answer, Services, ok};
use crate::caller::Caller;
use crate::convert::{duration, parse, time};
use crate::refusal::of_state;

/// All orders are in one queue.
const QUEUE: &str = "default";
/// Type of all tasks.
const TYPE: &str = "machine-bmc-command";
/// Tasks of a page when the request does not say.
const COUNT_DEFAULT: u32 = 100;
/// The most tasks of a page.
const COUNT_MAX: u32 = 1000;

#[tonic::async_trait]
impl TaskService for Services {
    async fn get(&self, request: Request<TaskServiceGetRequest>) -> Answer<TaskServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: OrderId = parse("task_id", &request.task_id)?;
        let found = self.0.read(&caller, |tables| {
            let order = tables
                .get::<BmcOrder>(&id)
                .filter(|_| is_queue(&request.queue));
            order
                .map(|order| task(order))
                .ok_or_else(|| StateError::not_found("task", id))
        });
        ok(TaskServiceGetResponse {
            task: Some(found.await?),
        })
    }

    /// Cancels what has not begun; forgets what is over.
    async fn delete(
        &self,
        request: Request<TaskServiceDeleteRequest>,
    ) -> Answer<TaskServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: OrderId = parse("task_id", &request.task_id)?;
        if !is_queue(&request.queue) {
            return Err(of_state(StateError::not_found("task", id)));
        }
        self.0.propose(&caller, DeleteBmcOrder { id }).await?;
        ok(TaskServiceDeleteResponse {})
    }

    async fn queues(
        &self,
        _request: Request<TaskServiceQueuesRequest>,
    ) -> Answer<TaskServiceQueuesResponse> {
        ok(TaskServiceQueuesResponse {
            queues: vec![QUEUE.to_owned()],
        })
    }

    /// The newest first.
    async fn list(
        &self,
        request: Request<TaskServiceListRequest>,
    ) -> Answer<TaskServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let tasks = self.0.read(&caller, |tables| Ok(page(tables, &request)));
        listing(tasks.await?, task)
    }
}

fn is_queue(queue: &str) -> bool {
    queue.is_empty() || queue == QUEUE
}

fn page(tables: &Tables, request: &TaskServiceListRequest) -> Vec<Arc<BmcOrder>> {
    if !request.queue.as_deref().is_none_or(is_queue) {
        return Vec::new();
    }
    let count = request.count.unwrap_or(COUNT_DEFAULT).clamp(1, COUNT_MAX);
    // Pages count from 1, as published clients do; 0 is the first as well.
    let before = request
        .page
        .unwrap_or(1)
        .saturating_sub(1)
        .saturating_mul(count);
    let before = usize::try_from(before).unwrap_or(usize::MAX);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    tables
        .all::<BmcOrder>()
        .rev()
        .skip(before)
        .take(count)
        .cloned()
        .collect()
}

pub(crate) fn task(order: &BmcOrder) -> TaskInfo {
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
