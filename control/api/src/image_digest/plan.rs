//! Decides without I/O, from the request and the stored image, how an image gets its digest.

use control_state::{Image, Labels, LabelsUpdate, UpdateImage, label};
use proto_types::Digest;

/// Where control found a digest: the value of the label [`label::DIGEST_SOURCE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DigestSource {
    /// A checksum file beside the image.
    Published,
    /// The image itself.
    Fetched,
    /// The image itself, which has the MD5 that is published beside it.
    FetchedMd5Agrees,
}

impl DigestSource {
    /// The label's value.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Fetched => "fetched",
            Self::FetchedMd5Agrees => "fetched, md5 agrees",
        }
    }
}

/// A digest that control found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundDigest {
    /// Of the whole file at the image's URL.
    pub(crate) digest: Digest,
    pub(crate) source: DigestSource,
}

/// The way in which an image gets its digest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DigestPlan {
    /// Nothing: the labels become what the request says.
    AsStated,
    /// The caller gives the digest: a label of where control found another one goes.
    Given,
    /// The URL stays the same: so do the digest that control found for it, and its source.
    Keep { digest: String, source: String },
    /// The digest is not known.
    Find { url: String },
}

/// The plan for a new image.
pub(crate) fn on_create(image: &Image) -> DigestPlan {
    match image.meta.labels.contains_key(label::DIGEST) {
        true => DigestPlan::Given,
        false => DigestPlan::Find {
            url: image.url.clone(),
        },
    }
}

/// The plan for a change of the image `old`. A digest does not outlive its URL: where the request
/// has a new URL and no new digest, the digest has to be found.
pub(crate) fn on_update(old: &Image, op: &UpdateImage) -> DigestPlan {
    let mut labels = old.meta.labels.clone();
    if let Some(change) = &op.labels
        && change.apply(&mut labels).is_err()
    {
        // Too many labels: the command will be refused.
        return DigestPlan::AsStated;
    }
    let (stated, before) = (
        labels.get(label::DIGEST),
        old.meta.labels.get(label::DIGEST),
    );
    let url = op.url.as_ref().unwrap_or(&old.url);
    let find = || DigestPlan::Find { url: url.clone() };
    match (stated, before) {
        (Some(stated), before) if Some(stated) != before => DigestPlan::Given,
        _ if *url != old.url => find(),
        (Some(_), _) => DigestPlan::AsStated,
        (None, Some(digest)) => match (&op.labels, old.meta.labels.get(label::DIGEST_SOURCE)) {
            // Clients that replace all labels do not know of these.
            (Some(LabelsUpdate::Replace(_)), Some(source)) => DigestPlan::Keep {
                digest: digest.clone(),
                source: source.clone(),
            },
            // Removing the label asks for a new look at the URL.
            _ => find(),
        },
        (None, None) if op.url.is_some() => find(),
        (None, None) => DigestPlan::AsStated,
    }
}

impl FoundDigest {
    /// Puts both labels on a new image.
    pub(crate) fn label(&self, labels: &mut Labels) {
        labels.insert(label::DIGEST.to_owned(), self.digest.to_string());
        let source = self.source.text().to_owned();
        labels.insert(label::DIGEST_SOURCE.to_owned(), source);
    }
}

/// The change of labels that also sets the digest and where control found it.
pub(crate) fn with_digest(
    change: Option<LabelsUpdate>,
    digest: String,
    source: String,
) -> LabelsUpdate {
    let pairs = [
        (label::DIGEST.to_owned(), digest),
        (label::DIGEST_SOURCE.to_owned(), source),
    ];
    match change {
        Some(LabelsUpdate::Replace(mut labels)) => {
            labels.extend(pairs);
            LabelsUpdate::Replace(labels)
        }
        Some(LabelsUpdate::Patch { mut update, remove }) => {
            update.extend(pairs);
            // The state applies removals first, so that both labels are set in the end.
            LabelsUpdate::Patch { update, remove }
        }
        None => LabelsUpdate::Patch {
            update: pairs.into(),
            remove: Vec::new(),
        },
    }
}

/// The change of labels that also removes where control found the digest.
pub(crate) fn without_source(change: Option<LabelsUpdate>) -> Option<LabelsUpdate> {
    Some(match change? {
        LabelsUpdate::Replace(mut labels) => {
            labels.remove(label::DIGEST_SOURCE);
            LabelsUpdate::Replace(labels)
        }
        LabelsUpdate::Patch {
            mut update,
            mut remove,
        } => {
            update.remove(label::DIGEST_SOURCE);
            remove.push(label::DIGEST_SOURCE.to_owned());
            LabelsUpdate::Patch { update, remove }
        }
    })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
