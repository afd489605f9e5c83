//! A control node that joins the cluster.

use std::net::IpAddr;

use control_pki::NodeJoin;
use control_store::{MemberChange, MembershipError};
use proto_link::{LinkStatus, Peer};
use proto_mesh::{JoinClusterRequest, JoinClusterResponse, NodeService, node_service};
use proto_types::is_host_and_port;
use tracing::info;

use crate::parts::GatewayParts;
use crate::status;

/// Longest address of a peer.
const ADDRESS_LEN_MAX: usize = 255;

impl NodeService for GatewayParts {
    async fn join_cluster(
        &self,
        peer: &Peer,
        request: JoinClusterRequest,
    ) -> Result<JoinClusterResponse, LinkStatus> {
        let ticket = request.ticket_id.clone();
        let remote = peer.remote().ip();
        let (method, about) = (&node_service::JOIN_CLUSTER, format!("ticket {ticket}"));
        let result = self
            .audited(method, peer, about, |shared| async move {
                shared.let_in(request, remote).await
            })
            .await;
        result.inspect_err(|error| {
            info!(remote = %peer.remote(), ticket, %error, "a node was not let in");
        })
    }
}

impl GatewayParts {
    async fn let_in(
        &self,
        request: JoinClusterRequest,
        remote: IpAddr,
    ) -> Result<JoinClusterResponse, LinkStatus> {
        check_address(&request.peer_address)?;
        let join = NodeJoin {
            ticket_id: request.ticket_id,
            secret: request.secret,
            request: request.csr,
            wrap_to: request.wrap_to,
            peer_address: request.peer_address,
            remote,
            level: request.level,
        };
        let admission = self.pki.admit_node(&join).await.map_err(status::pki)?;
        let add = MemberChange::Add {
            node: admission.node,
            address: join.peer_address,
        };
        match self.store.change_members(&self.permit(), &add).await {
            // The answer to the first request was lost.
            Ok(()) | Err(MembershipError::Taken { .. }) => {}
            Err(error) => return Err(status::membership(error)),
        }
        Ok(JoinClusterResponse {
            node: admission.node,
            cluster_id: self.store.cluster_id().to_string(),
            cluster: self.store.cluster().to_owned(),
            trust_domain: self.pki.trust_domain().to_owned(),
            chain: admission.chain.iter().map(|der| der.to_vec()).collect(),
            anchor: admission.anchor.to_vec(),
            wrap_public: admission.data_key.public,
            wrapped_key: admission.data_key.sealed,
        })
    }
}

/// The others will dial it: a mistake must not become a member.
fn check_address(address: &str) -> Result<(), LinkStatus> {
    if address.len() <= ADDRESS_LEN_MAX && is_host_and_port(address) {
        return Ok(());
    }
    Err(LinkStatus::invalid_argument(format!(
        "peers.address: {address:?} is not HOST:PORT; for example \"control-2.example:4444\""
    )))
}
