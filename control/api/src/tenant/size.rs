//! Sizes, to choose from.

use control_convert::catalog::{self, size_matches};
use control_convert::parse;
use control_front::listing::listing;
use control_gate::Caller;
use control_state::{self as state};
use proto_public::api::v2::size_service_server::SizeService;
use proto_public::api::v2::{
    SizeServiceGetRequest, SizeServiceGetResponse, SizeServiceListRequest, SizeServiceListResponse,
};
use proto_types::SizeId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl SizeService for Services {
    async fn get(
        &self,
        request: Request<SizeServiceGetRequest>,
    ) -> ApiResult<SizeServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: SizeId = parse("id", &request.get_ref().id)?;
        let found = self.gate.read(&caller, |tables| {
            tables.require::<state::Size>(&id).cloned()
        });
        ok(SizeServiceGetResponse {
            size: Some(catalog::size(&*found.await?)),
        })
    }

    async fn list(
        &self,
        request: Request<SizeServiceListRequest>,
    ) -> ApiResult<SizeServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let sizes = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Size>()
                .filter(|size| size_matches(size, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(sizes.await?, catalog::size)
    }
}
