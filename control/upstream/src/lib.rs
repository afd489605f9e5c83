//! The services for agents of the published stack: its boot server and installer, its switch
//! agents, its BMC agent and its components.
//!
//! They come over the public API, behind the same gate as users, with infra and machine tokens, to
//! any node. What they say becomes the commands that agents of ours give; what they are told is
//! looked up in the state again and again (`agent_stream`), so that an agent that comes back is
//! told whatever still holds.
//!
//! Invariants:
//! - an agent of the mesh that serves a switch or a role in a partition is served alone (`alone`);
//! - a stream ends with its token's right, and streams are bounded for each machine and partition
//!   (`published`);
//! - nothing that comes over the public API proves a machine after a restore (`signs_of_life`).

mod agent_stream;
mod alone;
mod bmc;
mod bmc_streams;
mod boot;
mod component;
mod convert;
mod event;
mod machine_token;
mod published;
mod registration;
mod signs_of_life;
mod stream_plan;
mod switch_agent;
mod switch_order;
mod waiting;

use std::sync::Arc;

use control_gate::ServiceContext;
use control_pki::Pki;
use control_presence::Presence;
use proto_public::infra::v2 as infra;
use tokio_util::sync::CancellationToken;
use tonic::service::RoutesBuilder;
use tonic::{Response, Status};

use published::PublishedStreams;

/// Result of a handler.
type RpcResult<T> = Result<Response<T>, Status>;

/// The services for published agents; cheap to clone.
#[derive(Debug, Clone)]
pub struct Upstream {
    gate: Arc<ServiceContext>,
    pki: Pki,
    presence: Presence,
    published: Arc<PublishedStreams>,
    stop: CancellationToken,
}

impl Upstream {
    /// Services that tell `presence` of whom they hear, and whose streams end with `stop`.
    pub fn new(
        gate: Arc<ServiceContext>,
        pki: Pki,
        presence: Presence,
        stop: CancellationToken,
    ) -> Self {
        Self {
            gate,
            pki,
            presence,
            published: Arc::default(),
            stop,
        }
    }

    /// Adds the services to routes of gRPC; the front stands before them.
    pub fn add_to(&self, routes: &mut RoutesBuilder) {
        macro_rules! add {
            ($($module:ident :: $server:ident),* $(,)?) => {
                $(routes.add_service(infra::$module::$server::new(self.clone())
                    .max_decoding_message_size(control_front::MESSAGE_BYTES_MAX + 5));)*
            };
        }
        add!(
            bmc_service_server::BmcServiceServer,
            boot_service_server::BootServiceServer,
            component_service_server::ComponentServiceServer,
            event_service_server::EventServiceServer,
            switch_service_server::SwitchServiceServer,
        );
    }
}

/// Wraps an answer.
fn ok<T>(message: T) -> RpcResult<T> {
    Ok(Response::new(message))
}
