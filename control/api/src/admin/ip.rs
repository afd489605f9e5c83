//! IP addresses of all projects.

use control_convert::network::{ip, ip_matches};
use control_front::listing::listing;
use control_gate::Caller;
use control_state::Ip;
use proto_public::admin::v2 as admin;
use tonic::Request;

use crate::services::{ApiResult, Services};

#[tonic::async_trait]
impl admin::ip_service_server::IpService for Services {
    async fn list(
        &self,
        request: Request<admin::IpServiceListRequest>,
    ) -> ApiResult<admin::IpServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let ips = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<Ip>()
                .filter(|ip| ip_matches(tables, ip, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(ips.await?, ip)
    }
}
