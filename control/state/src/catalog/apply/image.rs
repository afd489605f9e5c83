//! Images.

use proto_errors::Error;

use crate::catalog::command::{CreateImage, DeleteImage, UpdateImage};
use crate::catalog::entity::Image;
use crate::catalog::read::parse_image_id;
use crate::fields::{check_description, check_name, in_use, set};
use crate::meta::label;
use crate::references;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// An image is good for this long when nobody says otherwise, milliseconds: 90 days.
const IMAGE_LIFE_MS: u64 = 90 * 24 * 3_600_000;

fn check_image(image: &Image) -> CheckResult {
    parse_image_id(image.id.as_str())?;
    if let Some(name) = &image.name {
        check_name(name)?;
    }
    check_description(image.description.as_deref().unwrap_or_default())?;
    if !(image.url.starts_with("https://") || image.url.starts_with("http://")) {
        return Err(Error::invalid("url", "must be an http or https URL"));
    }
    if image.features.is_empty() {
        return Err(Error::invalid(
            "features",
            "must name at least one of machine, firewall",
        ));
    }
    if image.meta.labels.contains_key(label::DIGEST) && image.digest().is_none() {
        return Err(Error::invalid(
            label::DIGEST,
            "must be sha256:<64 hex digits> or sha512:<128>",
        ));
    }
    Ok(())
}

pub(crate) fn create_image(tx: &mut Tx<'_>, op: &CreateImage) -> ApplyResult {
    let mut image = op.0.clone();
    if image.expires_at == proto_types::Timestamp::ZERO {
        image.expires_at = tx.now.plus_ms(IMAGE_LIFE_MS);
    }
    check_image(&image)?;
    tx.create(image).map(Reply::Image)
}

pub(crate) fn update_image(tx: &mut Tx<'_>, op: &UpdateImage) -> ApplyResult {
    let mut image: Image = tx.require(&op.id)?;
    op.lock.check("image", op.id.as_str(), &image.meta)?;
    set(&mut image.url, op.url.as_ref());
    image.name = op.name.clone().or(image.name);
    image.description = op.description.clone().or(image.description);
    set(&mut image.features, op.features.as_ref());
    set(&mut image.classification, op.classification.as_ref());
    set(&mut image.expires_at, op.expires_at.as_ref());
    if let Some(labels) = &op.labels {
        labels.apply(&mut image.meta.labels)?;
    }
    check_image(&image)?;
    Ok(Reply::Image(tx.update(image)))
}

pub(crate) fn delete_image(tx: &mut Tx<'_>, op: &DeleteImage) -> ApplyResult {
    let image = tx.tables().require::<Image>(&op.0)?.clone();
    if let Some(machine) = references::machine_of_image(tx.tables(), &op.0) {
        return Err(in_use(
            "image",
            op.0.as_str(),
            "machine",
            &machine.to_string(),
        ));
    }
    tx.delete::<Image>(&op.0);
    Ok(Reply::Image(image))
}
