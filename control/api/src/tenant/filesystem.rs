//! Filesystem layouts, to choose from.

use control_convert::layout::layout;
use control_convert::{is, parse};
use control_front::listing::listing;
use control_gate::Caller;
use control_state::{self as state, query};
use proto_public::api::v2::filesystem_service_server::FilesystemService;
use proto_public::api::v2::{
    FilesystemServiceGetRequest, FilesystemServiceGetResponse, FilesystemServiceListRequest,
    FilesystemServiceListResponse,
};
use proto_types::LayoutId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl FilesystemService for Services {
    async fn get(
        &self,
        request: Request<FilesystemServiceGetRequest>,
    ) -> ApiResult<FilesystemServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: LayoutId = parse("id", &request.get_ref().id)?;
        let found = self
            .gate
            .read(&caller, |tables| query::layout(tables, &id))
            .await?;
        ok(FilesystemServiceGetResponse {
            filesystem_layout: Some(layout(&found)),
        })
    }

    async fn list(
        &self,
        request: Request<FilesystemServiceListRequest>,
    ) -> ApiResult<FilesystemServiceListResponse> {
        let caller = Caller::of(&request)?;
        let wanted = request.into_inner().id;
        let layouts = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Layout>()
                .filter(|layout| is(wanted.as_ref(), layout.id.as_str()));
            Ok(fitting.cloned().collect())
        });
        listing(layouts.await?, layout)
    }
}
