//! Operating system images, to choose from.

use std::sync::Arc;

use control_convert::catalog::{self, image_matches};
use control_convert::enums::from_classification;
use control_convert::parse;
use control_front::listing::listing;
use control_gate::Caller;
use control_state::{self as state, newest_image, parse_image_id};
use proto_public::api::v2::image_service_server::ImageService;
use proto_public::api::v2::{
    ImageServiceGetRequest, ImageServiceGetResponse, ImageServiceLatestRequest,
    ImageServiceLatestResponse, ImageServiceListRequest, ImageServiceListResponse,
};
use proto_types::{ImageId, Timestamp};
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl ImageService for Services {
    async fn get(
        &self,
        request: Request<ImageServiceGetRequest>,
    ) -> ApiResult<ImageServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: ImageId = parse("id", &request.get_ref().id)?;
        let found = self.gate.read(&caller, |tables| {
            tables.require::<state::Image>(&id).cloned()
        });
        ok(ImageServiceGetResponse {
            image: Some(catalog::image(&*found.await?)),
        })
    }

    async fn list(
        &self,
        request: Request<ImageServiceListRequest>,
    ) -> ApiResult<ImageServiceListResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let images = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Image>()
                .filter(|image| image_matches(image, query.as_ref()));
            Ok(fitting.cloned().collect())
        });
        listing(images.await?, catalog::image)
    }

    async fn latest(
        &self,
        request: Request<ImageServiceLatestRequest>,
    ) -> ApiResult<ImageServiceLatestResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let class = request.classification.and_then(from_classification);
        let now = self.gate.now();
        let found = self.gate.read(&caller, |tables| {
            latest(tables, &request.os, class, now).cloned()
        });
        ok(ImageServiceLatestResponse {
            image: Some(catalog::image(&*found.await?)),
        })
    }
}

/// The newest image of an operating system, whatever its version, or of `os-major.minor`.
fn latest<'a>(
    tables: &'a state::Tables,
    os: &str,
    class: Option<state::Classification>,
    now: Timestamp,
) -> Result<&'a Arc<state::Image>, state::StateError> {
    if parse_image_id(os).is_ok() {
        return newest_image(tables, os, class, now);
    }
    let of_os = tables.all::<state::Image>().filter_map(|image| {
        let (own, version) = parse_image_id(image.id.as_str()).ok()?;
        let fits = own == os
            && now < image.expires_at
            && class.is_none_or(|class| class == image.classification);
        fits.then_some((version, image))
    });
    let newest = of_os
        .max_by_key(|(version, _)| *version)
        .map(|(_, image)| image);
    newest.ok_or_else(|| state::StateError::not_found("image", os))
}
