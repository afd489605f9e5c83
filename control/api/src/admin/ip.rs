//! IP addresses of all projects.

use control_convert::network::{ip, ip_matches};
use control_front::listing::listing;
use control_gate::Caller;
use control_state::Ip;
use proto_public::admin::v2 as admin;
use tonic::Request;

use crate::services::{Answer, Services};

#[tonic::async_trait]
impl admin::ip_service_server::IpService for Services {
    async fn list(
        &self,
        request: Request<admin::IpServiceListRequest>,
    ) -> Answer<admin::IpServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let ips = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<Ip>()
                .filter(|it| ip_matches(tables, it, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(ips.await?, ip)
    }
}
