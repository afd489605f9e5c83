//! Partitions, to choose from.

use control_convert::catalog::{self};
use control_convert::{has_labels, is, parse};
use control_front::listing::listing;
use control_gate::Caller;
use control_state::{self as state};
use proto_public::api::v2::partition_service_server::PartitionService;
use proto_public::api::v2::{
    PartitionServiceGetRequest, PartitionServiceGetResponse, PartitionServiceListRequest,
    PartitionServiceListResponse,
};
use proto_types::PartitionId;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl PartitionService for Services {
    async fn get(
        &self,
        request: Request<PartitionServiceGetRequest>,
    ) -> ApiResult<PartitionServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: PartitionId = parse("id", &request.get_ref().id)?;
        let found = self.gate.read(&caller, |tables| {
            tables.require::<state::Partition>(&id).cloned()
        });
        ok(PartitionServiceGetResponse {
            partition: Some(catalog::partition(&*found.await?)),
        })
    }

    async fn list(
        &self,
        request: Request<PartitionServiceListRequest>,
    ) -> ApiResult<PartitionServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query.unwrap_or_default();
        let partitions = self.gate.read(&caller, |tables| {
            let fitting = tables.all::<state::Partition>().filter(|partition| {
                is(query.id.as_ref(), partition.id.as_str())
                    && has_labels(&partition.meta.labels, query.labels.as_ref())
            });
            Ok(fitting.cloned().collect())
        });
        listing(partitions.await?, catalog::partition)
    }
}
