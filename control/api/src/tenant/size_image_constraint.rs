//! Size-image constraints: whether machines of a size can run an image.

use control_convert::parse;
use control_gate::Caller;
use control_state::{self as state};
use proto_public::api::v2::size_image_constraint_service_server::SizeImageConstraintService;
use proto_public::api::v2::{
    SizeImageConstraintServiceTryRequest, SizeImageConstraintServiceTryResponse,
};
use proto_types::{ImageId, SizeId};
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl SizeImageConstraintService for Services {
    /// Says by its status whether the image may run on machines of the size.
    async fn r#try(
        &self,
        request: Request<SizeImageConstraintServiceTryRequest>,
    ) -> ApiResult<SizeImageConstraintServiceTryResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let size: SizeId = parse("size", &request.size)?;
        let image: ImageId = parse("image", &request.image)?;
        self.gate
            .read(&caller, |tables| {
                state::query::try_image(tables, &size, &image)
            })
            .await?;
        ok(SizeImageConstraintServiceTryResponse {})
    }
}
