//! The image of a deployment.

use std::sync::Arc;

use control_state::{Classification, Image, ImageFeature, JsonFields, Tables, newest_image};
use proto_types::{Digest, ImageId, Timestamp};

use super::instance::text_field;
use crate::error::IronicError;

/// Longest part of a client's text in a message, characters.
const SHOWN_MAX: usize = 200;

/// The image that a node names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeployImage {
    /// Id of an image, or the address that an image of the catalogue has.
    source: String,
    /// The digest that the client expects. `None` means that it names none of a kind that images have.
    digest: Option<Digest>,
}

impl DeployImage {
    /// The image that the fields of a node name.
    ///
    /// # Errors
    /// 400 for a node that names none.
    pub(super) fn of(info: &JsonFields, node: &str) -> Result<Self, IronicError> {
        let source = text_field(info, "image_source").filter(|source| !source.is_empty());
        let source = source.ok_or_else(|| {
            IronicError::invalid(format!(
                "Failed to validate deploy or power info for node {node}. Error: Cannot validate image \
                 information for node {node} because one or more parameters are missing from its \
                 instance_info. Missing are: ['image_source']"
            ))
        })?;
        Ok(Self {
            source,
            digest: digest(info),
        })
    }

    /// The id of the image.
    ///
    /// # Errors
    /// 400 for one that is not in the catalogue, and for one of another digest.
    pub(super) fn find(&self, tables: &Tables, now: Timestamp) -> Result<ImageId, IronicError> {
        let image = if self.source.contains("://") {
            of_address(tables.all::<Image>(), &self.source, now)
        } else {
            let supported = Some(Classification::Supported);
            newest_image(tables, &self.source, supported, now).ok()
        };
        let image = image.ok_or_else(|| self.unknown())?;
        self.check_digest(image)?;
        Ok(image.id.clone())
    }

    fn unknown(&self) -> IronicError {
        let shown: String = self.source.chars().take(SHOWN_MAX).collect();
        IronicError::invalid(format!(
            "Image {shown} could not be found: image_source is the id of an image of metalmesh, or the \
             address that an image has there (metalmesh image ls)"
        ))
    }

    /// Refuses an image whose digest is another one of the same kind.
    fn check_digest(&self, image: &Image) -> Result<(), IronicError> {
        let (Some(wanted), Some(known)) = (&self.digest, image.digest()) else {
            return Ok(());
        };
        let is_other = wanted.algorithm() == known.algorithm() && !wanted.same_as(&known);
        if !is_other {
            return Ok(());
        }
        let (id, kind) = (&image.id, known.algorithm().name());
        Err(IronicError::invalid(format!(
            "The {kind} checksum of instance_info is not that of image {id}, which is {}",
            known.hex()
        )))
    }
}

/// The digest that the fields name. Other kinds than those of images are not compared: hammer verifies
/// the digest that the image has in any case.
fn digest(info: &JsonFields) -> Option<Digest> {
    let named =
        text_field(info, "image_os_hash_value").or_else(|| text_field(info, "image_checksum"));
    let named = named?;
    let kind = text_field(info, "image_os_hash_algo").unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let found: Digest = named.trim().parse().ok()?;
    let is_of_kind = kind.is_empty() || kind == found.algorithm().name();
    Some(found).filter(|_| is_of_kind)
}

/// The image that has this address: one that can be installed before others, then the newest.
fn of_address<'a>(
    images: impl Iterator<Item = &'a Arc<Image>>,
    address: &str,
    now: Timestamp,
) -> Option<&'a Arc<Image>> {
    let found = images.filter(|image| image.url == address);
    found.max_by_key(|image| {
        (
            now < image.expires_at,
            image.features.contains(&ImageFeature::Machine),
            image.classification == Classification::Supported,
            image.meta.created_at,
        )
    })
}

#[cfg(test)]
mod tests {
    use control_state::{Meta, label};
    use serde_json::{Value, json};

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(5000);

    fn info(fields: Value) -> JsonFields {
        let Value::Object(fields) = fields else {
            panic!("fields are an object");
        };
        let texts = fields.into_iter();
        texts
            .map(|(name, value)| (name, value.to_string()))
            .collect()
    }

    fn image(id: &str, created_ms: u64, expires_ms: u64, kind: Classification) -> Arc<Image> {
        let mut meta = Meta {
            created_at: Timestamp::from_ms(created_ms),
            ..Meta::default()
        };
        let digest = format!("sha256:{}", "ab".repeat(32));
        meta.labels.insert(label::DIGEST.to_owned(), digest);
        Arc::new(Image {
            id: id.parse().unwrap(),
            meta,
            url: "https://i/debian.tar.zst".to_owned(),
            name: None,
            description: None,
            features: [ImageFeature::Machine].into(),
            classification: kind,
            expires_at: Timestamp::from_ms(expires_ms),
        })
    }

    #[test]
    fn an_address_means_the_newest_image_that_can_be_installed() {
        let images = [
            image("debian-12.0.1", 1, 9000, Classification::Supported),
            image("debian-12.0.2", 2, 9000, Classification::Supported),
            image("debian-12.0.3", 3, 4000, Classification::Supported),
            image("debian-12.0.4", 4, 9000, Classification::Deprecated),
        ];
        let found = |address: &str| {
            let found = of_address(images.iter(), address, NOW);
            found.map(|image| image.id.as_str())
        };
        assert_eq!(found("https://i/debian.tar.zst"), Some("debian-12.0.2"));
        assert_eq!(found("https://i/other"), None);
    }

    #[test]
    fn checksums_are_compared_if_both_are_of_one_kind() {
        let image = image("debian-12.0.1", 1, 9000, Classification::Supported);
        let (same, other) = ("AB".repeat(32), "cd".repeat(32));
        let of_sha512 = "cd".repeat(64);
        for (fields, expected) in [
            (json!({}), true),
            (json!({"image_checksum": same}), true),
            (json!({"image_checksum": other}), false),
            (
                json!({"image_checksum": "d41d8cd98f00b204e9800998ecf8427e"}),
                true,
            ),
            (json!({"image_checksum": "https://i/sums"}), true),
            (
                json!({"image_os_hash_algo": "sha256", "image_os_hash_value": other}),
                false,
            ),
            (
                json!({"image_os_hash_algo": "SHA256", "image_os_hash_value": same}),
                true,
            ),
            (
                json!({"image_os_hash_algo": "sha512", "image_os_hash_value": of_sha512}),
                true,
            ),
            (
                json!({"image_checksum": same, "image_os_hash_value": other}),
                false,
            ),
        ] {
            let mut fields = info(fields);
            fields.insert("image_source".to_owned(), "\"debian-12\"".to_owned());
            let wish = DeployImage::of(&fields, "n").unwrap();
            assert_eq!(wish.check_digest(&image).is_ok(), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_node_without_an_image_is_refused() {
        for fields in [
            json!({}),
            json!({"image_source": ""}),
            json!({"image_source": 1}),
        ] {
            let refused = DeployImage::of(&info(fields), "n").unwrap_err();
            assert!(refused.text.ends_with("Missing are: ['image_source']"));
        }
        let wish = DeployImage::of(&info(json!({"image_source": "debian-12"})), "n").unwrap();
        let refused = wish.find(&Tables::new(), NOW).unwrap_err();
        assert!(
            refused
                .text
                .starts_with("Image debian-12 could not be found")
        );
    }
}
