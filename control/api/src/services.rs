//! The object that carries out the calls of every service.

use std::sync::Arc;

use control_gate::ServiceContext;
use tonic::{Response, Status};

use crate::node::NodeContext;

/// The result of a handler.
pub(crate) type ApiResult<T> = Result<Response<T>, Status>;

/// All services for users; cheap to clone.
#[derive(Debug, Clone)]
pub struct Services {
    pub(crate) gate: Arc<ServiceContext>,
    pub(crate) node: Arc<NodeContext>,
}

impl Services {
    /// Services over the shared parts.
    pub fn new(gate: Arc<ServiceContext>, node: Arc<NodeContext>) -> Self {
        Self { gate, node }
    }
}

/// Wraps an answer.
pub(crate) fn ok<T>(message: T) -> ApiResult<T> {
    Ok(Response::new(message))
}

/// Adds services to routes, each named by its server type.
macro_rules! add_services {
    ($routes:expr, $services:expr, [$($package:ident :: $module:ident :: $server:ident),* $(,)?]) => {
        $($routes.add_service($package::$module::$server::new($services.clone())
            .max_decoding_message_size(control_front::MESSAGE_BYTES_MAX + 5));)*
    };
}

pub(crate) use add_services;
