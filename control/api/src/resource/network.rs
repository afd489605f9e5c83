//! Networks: what projects and administrators do alike.

use std::sync::Arc;

use control_convert::network::{Fullness, network};
use control_convert::parse;
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{self as state};
use proto_public::api::v2::{self as api};
use proto_types::NetworkId;
use tonic::Status;
use uuid::Uuid;

use crate::services::Services;

pub(crate) fn new_id() -> Result<NetworkId, Status> {
    parse("id", &Uuid::now_v7().to_string())
}

impl Services {
    pub(crate) async fn network_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<state::Network>, Status> {
        self.gate
            .propose(caller, op)
            .await?
            .network()
            .map_err(of_state)
    }

    /// A network for the wire, with its usage.
    pub(crate) async fn shown(&self, record: &state::Network) -> Result<api::Network, Status> {
        self.gate
            .read_latest(|tables| Ok(network(record, Some(&Fullness::of(tables)))))
            .await
    }
}
