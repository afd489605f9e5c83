//! Tasks: the orders to BMCs, as the contract shows work that goes on in the background.

use std::sync::Arc;

use control_convert::parse;
use control_convert::task::{QUEUE, task};
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{BmcOrder, DeleteBmcOrder, StateError, Tables};
use proto_public::admin::v2::task_service_server::TaskService;
use proto_public::admin::v2::{
    TaskServiceDeleteRequest, TaskServiceDeleteResponse, TaskServiceGetRequest,
    TaskServiceGetResponse, TaskServiceListRequest, TaskServiceListResponse,
    TaskServiceQueuesRequest, TaskServiceQueuesResponse,
};
use proto_types::OrderId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

/// Default number of tasks in a page.
const COUNT_DEFAULT: u32 = 100;
/// Most tasks in a page. A larger count is lowered to it.
const COUNT_MAX: u32 = 1000;

#[tonic::async_trait]
impl TaskService for Services {
    async fn get(
        &self,
        request: Request<TaskServiceGetRequest>,
    ) -> ApiResult<TaskServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: OrderId = parse("task_id", &request.task_id)?;
        let found = self.gate.read(&caller, |tables| {
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

    /// Cancels an order that has not begun, or deletes one that is over.
    async fn delete(
        &self,
        request: Request<TaskServiceDeleteRequest>,
    ) -> ApiResult<TaskServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: OrderId = parse("task_id", &request.task_id)?;
        if !is_queue(&request.queue) {
            return Err(of_state(StateError::not_found("task", id)));
        }
        self.gate.propose(&caller, DeleteBmcOrder { id }).await?;
        ok(TaskServiceDeleteResponse {})
    }

    async fn queues(
        &self,
        _request: Request<TaskServiceQueuesRequest>,
    ) -> ApiResult<TaskServiceQueuesResponse> {
        ok(TaskServiceQueuesResponse {
            queues: vec![QUEUE.to_owned()],
        })
    }

    /// The newest first.
    async fn list(
        &self,
        request: Request<TaskServiceListRequest>,
    ) -> ApiResult<TaskServiceListResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let tasks = self.gate.read(&caller, |tables| Ok(page(tables, &request)));
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
    // Pages count from 1, as in published clients; 0 is the first page too.
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
