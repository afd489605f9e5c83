//! A node, and a store of images from which control fetches.

use admin::image_service_client::ImageServiceClient;
use control_api::FetchLimits;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use ring::digest::{SHA256, digest};
use tonic::{Code, Status};

use crate::image_store::ImageStore;
use crate::node::{Node, Wire, debian};

pub(crate) const ID: &str = "debian-12.0.20260101";
pub(crate) const DIGEST: &str = "metalmesh.dev/digest";
pub(crate) const SOURCE: &str = "metalmesh.dev/digest-source";
pub(crate) const CONTENT: &[u8] = b"a system in a tar archive";

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn sha256_of(content: &[u8]) -> String {
    format!("sha256:{}", hex(digest(&SHA256, content).as_ref()))
}

/// An image as a published client makes it: without labels.
pub(crate) fn image(url: String) -> api::Image {
    api::Image {
        url,
        meta: None,
        ..debian()
    }
}

/// The digest of an image and where control found it.
pub(crate) fn pinned(image: &api::Image) -> (Option<String>, Option<String>) {
    let labels = image.meta.as_ref().and_then(|meta| meta.labels.as_ref());
    let label = |key| labels.and_then(|labels| labels.labels.get(key)).cloned();
    (label(DIGEST), label(SOURCE))
}

pub(crate) fn found(digest: &str, source: &str) -> (Option<String>, Option<String>) {
    (Some(digest.to_owned()), Some(source.to_owned()))
}

/// A node, a store of images and a client of the administrators.
pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) store: ImageStore,
    pub(crate) images: ImageServiceClient<Wire>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        Self::start_with(FetchLimits::default()).await
    }

    pub(crate) async fn start_with(limits: FetchLimits) -> Self {
        let store = ImageStore::start().await;
        let node = Node::start_fetching(limits).await;
        let images = ImageServiceClient::new(node.as_admin());
        Self {
            node,
            store,
            images,
        }
    }

    pub(crate) async fn create(&self, image: api::Image) -> Result<api::Image, Status> {
        let request = admin::ImageServiceCreateRequest { image: Some(image) };
        let made = self.images.clone().create(request).await?;
        Ok(made.into_inner().image.unwrap())
    }

    pub(crate) async fn update(
        &self,
        url: Option<String>,
        labels: Option<api::UpdateLabels>,
    ) -> Result<api::Image, Status> {
        let request = admin::ImageServiceUpdateRequest {
            id: ID.into(),
            update_meta: Some(api::UpdateMeta {
                updated_at: None,
                locking_strategy: api::OptimisticLockingStrategy::Server.into(),
            }),
            url,
            labels,
            ..Default::default()
        };
        let changed = self.images.clone().update(request).await?;
        Ok(changed.into_inner().image.unwrap())
    }

    pub(crate) async fn forget(&self) {
        let request = admin::ImageServiceDeleteRequest { id: ID.into() };
        self.images.clone().delete(request).await.unwrap();
    }

    /// The image as it is stored.
    pub(crate) async fn stored(&self) -> Option<api::Image> {
        let mut images = api::image_service_client::ImageServiceClient::new(self.node.as_admin());
        let got = images
            .get(api::ImageServiceGetRequest { id: ID.into() })
            .await;
        match got {
            Ok(got) => got.into_inner().image,
            Err(status) if status.code() == Code::NotFound => None,
            Err(status) => panic!("{status}"),
        }
    }
}

pub(crate) fn replace(pairs: &[(&str, &str)]) -> Option<api::UpdateLabels> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let labels = pairs.iter().map(owned).collect();
    Some(api::UpdateLabels {
        strategy: Some(api::update_labels::Strategy::Replace(api::Labels {
            labels,
        })),
    })
}

pub(crate) fn patch(pairs: &[(&str, &str)], remove: &[&str]) -> Option<api::UpdateLabels> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let labels = pairs.iter().map(owned).collect();
    Some(api::UpdateLabels {
        strategy: Some(api::update_labels::Strategy::Patch(api::LabelsPatch {
            update: Some(api::Labels { labels }),
            remove: remove.iter().map(|key| (*key).to_owned()).collect(),
        })),
    })
}
