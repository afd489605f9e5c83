//! Operating system images, kept by administrators.

use std::sync::Arc;

use control_convert::catalog::{self, from_features, from_image, image_matches};
use control_convert::enums::from_classification;
use control_convert::{from_time, labels_update, lock, parse, required};
use control_front::listing::{EncodedItems, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{self as state, CreateImage, DeleteImage, Lock, UpdateImage, label};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::ImageUsage;
use proto_types::ImageId;
use tonic::{Code, Request, Status};

use crate::image_digest::{self, DigestPlan, FoundDigest};
use crate::services::{ApiResult, Services, ok};

/// Most attempts to plan an update whose caller gave no lock, when others change the image in
/// between. After them the caller gets the conflict.
const PLANS_MAX: u32 = 3;

#[tonic::async_trait]
impl admin::image_service_server::ImageService for Services {
    async fn create(
        &self,
        request: Request<admin::ImageServiceCreateRequest>,
    ) -> ApiResult<admin::ImageServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let image = required("image", request.into_inner().image)?;
        let image = from_image(image, self.gate.now())?;
        state::Networking::of_image(&image.meta.labels).map_err(of_state)?;
        let image = self.with_digest(&caller, image).await?;
        let made = self.image_reply(&caller, CreateImage(image)).await?;
        ok(admin::ImageServiceCreateResponse {
            image: Some(catalog::image(&made)),
        })
    }

    async fn update(
        &self,
        request: Request<admin::ImageServiceUpdateRequest>,
    ) -> ApiResult<admin::ImageServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let features: std::collections::BTreeSet<_> = from_features(&request.features)?;
        let op = UpdateImage {
            id: parse("id", &request.id)?,
            lock: lock(request.update_meta)?,
            url: request.url,
            name: request.name,
            description: request.description,
            features: (!features.is_empty()).then_some(features),
            classification: from_classification(request.classification),
            expires_at: request.expires_at.as_ref().map(from_time),
            labels: labels_update(request.labels),
        };
        let labels = op.labels.as_ref().map(state::LabelsUpdate::stated);
        labels
            .map_or(Ok(state::Networking::Static), state::Networking::of_image)
            .map_err(of_state)?;
        let changed = self.update_with_digest(&caller, op).await?;
        ok(admin::ImageServiceUpdateResponse {
            image: Some(catalog::image(&changed)),
        })
    }

    async fn delete(
        &self,
        request: Request<admin::ImageServiceDeleteRequest>,
    ) -> ApiResult<admin::ImageServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let op = DeleteImage(parse("id", &request.get_ref().id)?);
        let gone = self.image_reply(&caller, op).await?;
        ok(admin::ImageServiceDeleteResponse {
            image: Some(catalog::image(&gone)),
        })
    }

    async fn usage(
        &self,
        request: Request<admin::ImageServiceUsageRequest>,
    ) -> ApiResult<admin::ImageServiceUsageResponse> {
        let caller = Caller::of(&request)?;
        let query = request.into_inner().query;
        let usage = self.gate.read(&caller, |tables| {
            let fitting = tables
                .all::<state::Image>()
                .filter(|image| image_matches(image, query.as_ref()));
            let usage = fitting.map(|image| {
                let users = tables.all::<state::Machine>().filter(|machine| {
                    machine
                        .allocation
                        .as_ref()
                        .is_some_and(|allocation| allocation.image == image.id)
                });
                ImageUsage {
                    image: Some(catalog::image(image)),
                    used_by: users.map(|machine| machine.id.to_string()).collect(),
                }
            });
            Ok(usage.collect::<EncodedItems>())
        });
        listing_encoded(usage.await?)
    }
}

impl Services {
    /// Adds the digest to a new image: the one of the request, or the one that control finds.
    async fn with_digest(
        &self,
        caller: &Caller,
        mut image: state::Image,
    ) -> Result<state::Image, Status> {
        match image_digest::on_create(&image) {
            DigestPlan::Find { url } => {
                let found = self.find_digest(caller, &image.id, &url, CreateImage(image.clone()));
                found.await?.label(&mut image.meta.labels);
            }
            _ => {
                image.meta.labels.remove(label::DIGEST_SOURCE);
            }
        }
        Ok(image)
    }

    /// Changes an image. If its URL changes without a digest, the digest is found anew.
    async fn update_with_digest(
        &self,
        caller: &Caller,
        op: UpdateImage,
    ) -> Result<Arc<state::Image>, Status> {
        if op.url.is_none() && op.labels.is_none() {
            return self.image_reply(caller, op).await;
        }
        let mut known: Option<(String, FoundDigest)> = None;
        let mut tries = 1;
        loop {
            let changed = self.planned_update(caller, op.clone(), &mut known).await;
            match changed {
                // Another call changed the image after it was read: the plan may be wrong by now.
                Err(status)
                    if status.code() == Code::Aborted
                        && op.lock == Lock::Server
                        && tries < PLANS_MAX =>
                {
                    tries += 1;
                }
                changed => return changed,
            }
        }
    }

    /// Applies a change to the image that it was planned for. `known` is the digest that an earlier
    /// try found, and the URL that it is of.
    async fn planned_update(
        &self,
        caller: &Caller,
        mut op: UpdateImage,
        known: &mut Option<(String, FoundDigest)>,
    ) -> Result<Arc<state::Image>, Status> {
        let old = self
            .gate
            .read(caller, |tables| {
                tables.require::<state::Image>(&op.id).cloned()
            })
            .await?;
        let plan = image_digest::on_update(&old, &op);
        if op.lock == Lock::Server {
            op.lock = Lock::Client(old.meta.updated_at);
        }
        op.labels = match plan {
            DigestPlan::AsStated => op.labels,
            DigestPlan::Given => image_digest::without_source(op.labels),
            DigestPlan::Keep { digest, source } => {
                Some(image_digest::with_digest(op.labels, digest, source))
            }
            DigestPlan::Find { url } => {
                let found = match known.take() {
                    Some((of, found)) if of == url => found,
                    _ => self.find_digest(caller, &op.id, &url, op.clone()).await?,
                };
                let (digest, source) = (found.digest.to_string(), found.source.text().to_owned());
                *known = Some((url, found));
                Some(image_digest::with_digest(op.labels, digest, source))
            }
        };
        self.image_reply(caller, op).await
    }

    /// The digest of the file at `url`, which may take minutes. `op` is the change that needs it:
    /// it is tried first, so that a change that would be refused fetches nothing.
    async fn find_digest(
        &self,
        caller: &Caller,
        image: &ImageId,
        url: &str,
        op: impl Into<state::Op>,
    ) -> Result<FoundDigest, Status> {
        self.gate.check(caller, op).await?;
        let found = self.node.image_digests.find(url).await;
        let found = found.map_err(|error| error.status(image))?;
        self.gate.still_allows(caller).await?;
        Ok(found)
    }

    async fn image_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<state::Image>, Status> {
        self.gate
            .propose(caller, op)
            .await?
            .image()
            .map_err(of_state)
    }
}
