//! Which BMC is a machine's, as an administrator says.

use control_convert::parse;
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::ConfirmBmc;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::bmc_claim_service_server::BmcClaimService;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl BmcClaimService for Services {
    async fn confirm(
        &self,
        request: Request<mesh::BmcClaimServiceConfirmRequest>,
    ) -> ApiResult<mesh::BmcClaimServiceConfirmResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = ConfirmBmc {
            machine: parse("machine", &request.machine)?,
            address: request.address,
        };
        let reply = self.gate.propose(&caller, op).await?;
        let machine = reply.machine().map_err(of_state)?;
        let bmc = machine.bmc.as_ref();
        ok(mesh::BmcClaimServiceConfirmResponse {
            machine: machine.id.to_string(),
            address: bmc.map(|bmc| bmc.address.clone()).unwrap_or_default(),
        })
    }
}
