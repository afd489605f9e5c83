//! `metalmesh image`.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    Image, ImageQuery, ImageServiceGetRequest, ImageServiceLatestRequest, ImageServiceListRequest,
    Labels, Meta,
};

use super::{given, label_patch, server_lock};
use crate::app::App;
use crate::text::{enum_value, from_now, pairs, parse_duration};

/// Label with the digest of the image's file.
const DIGEST_LABEL: &str = "metalmesh.dev/digest";
/// Label with the source of the digest. Only control sets it.
const SOURCE_LABEL: &str = "metalmesh.dev/digest-source";
const FEATURE: &str = "metalstack.api.v2.ImageFeature";
const CLASS: &str = "metalstack.api.v2.ImageClassification";

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Register an image; its id is OS-MAJOR.MINOR[.PATCH].
    Create(ImageCreateArgs),
    /// List images.
    #[command(visible_alias = "list")]
    Ls,
    /// Show an image.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the image.
        id: String,
    },
    /// Show the newest image of an operating system.
    Latest {
        /// Operating system of the image.
        os: String,
    },
    /// List the machines that use an image, or those of every image.
    Usage {
        /// Id of the image.
        id: Option<String>,
    },
    /// Change an image.
    Update(ImageUpdateArgs),
    /// Delete an unused image.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the image.
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ImageCreateArgs {
    /// Id of the image: OS-MAJOR.MINOR[.PATCH].
    id: String,
    /// URL of the image: a tar archive, compressed with zstd.
    #[arg(long)]
    url: String,
    /// Digest of the file, as sha256:HEX or sha512:HEX. Without it control takes the digest from
    /// URL.sha256 or URL.sha512, or computes it from the file, which may take minutes.
    #[arg(long)]
    digest: Option<String>,
    /// Display name.
    #[arg(long)]
    name: Option<String>,
    /// Description, free text.
    #[arg(long)]
    description: Option<String>,
    /// Feature of the image: machine or firewall. Repeatable.
    #[arg(long = "feature", default_values_t = ["machine".to_owned()])]
    features: Vec<String>,
    /// Classification: preview, supported or deprecated.
    #[arg(long, default_value = "supported")]
    classification: String,
    /// Validity of the image from now on, such as 90d.
    #[arg(long, default_value = "90d", value_parser = parse_duration)]
    expires: Duration,
    /// Set a label. Repeatable.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ImageUpdateArgs {
    /// Id of the image.
    id: String,
    /// URL of the image: a tar archive, compressed with zstd.
    #[arg(long)]
    url: Option<String>,
    /// Digest of the file at the URL, as sha256:HEX or sha512:HEX. Without it control finds the
    /// digest of a new URL; to make it read the same URL again: --label metalmesh.dev/digest-
    #[arg(long)]
    digest: Option<String>,
    /// Display name.
    #[arg(long)]
    name: Option<String>,
    /// Description, free text.
    #[arg(long)]
    description: Option<String>,
    /// Classification: preview, supported or deprecated.
    #[arg(long)]
    classification: Option<String>,
    /// Validity of the image from now on, such as 90d.
    #[arg(long, value_parser = parse_duration)]
    expires: Option<Duration>,
    /// Set (`a=b`) or remove (`a-`) a label. Repeatable.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
}

pub(crate) async fn run(app: &App, command: ImageCommand) -> Result<()> {
    match command {
        ImageCommand::Create(create) => {
            let request = admin::ImageServiceCreateRequest {
                image: Some(made(create)?),
            };
            let answer = app
                .client
                .admin_images()
                .create(request)
                .await?
                .into_inner();
            let image = given(answer.image)?;
            note_digest(&image);
            app.output.one(&image)
        }
        ImageCommand::Ls => {
            let request = ImageServiceListRequest { query: None };
            app.output
                .list(&app.client.images().list(request).await?.into_inner().images)
        }
        ImageCommand::Show { id } => {
            let answer = app
                .client
                .images()
                .get(ImageServiceGetRequest { id })
                .await?;
            app.output.one(&given(answer.into_inner().image)?)
        }
        ImageCommand::Latest { os } => {
            let request = ImageServiceLatestRequest {
                os,
                classification: None,
            };
            let answer = app.client.images().latest(request).await?.into_inner();
            app.output.one(&given(answer.image)?)
        }
        ImageCommand::Update(update) => {
            let image = changed(app, update).await?;
            note_digest(&image);
            app.output.one(&image)
        }
        ImageCommand::Usage { id } => usage(app, id).await,
        ImageCommand::Rm { id } => {
            let request = admin::ImageServiceDeleteRequest { id };
            let answer = app
                .client
                .admin_images()
                .delete(request)
                .await?
                .into_inner();
            app.output.one(&given(answer.image)?)
        }
    }
}

/// Notes the digest that control found, and its source.
fn note_digest(image: &Image) {
    let labels = image.meta.as_ref().and_then(|meta| meta.labels.as_ref());
    let label = |key| labels.and_then(|labels| labels.labels.get(key));
    if let (Some(digest), Some(source)) = (label(DIGEST_LABEL), label(SOURCE_LABEL)) {
        noteln!("digest found by control ({source}): {digest}");
    }
}

async fn changed(app: &App, update: ImageUpdateArgs) -> Result<Image> {
    let mut flags = update.labels;
    if let Some(digest) = update.digest {
        check_digest(&digest)?;
        flags.push(format!("{DIGEST_LABEL}={digest}"));
    }
    let class = update
        .classification
        .map(|text| enum_value(CLASS, &text))
        .transpose()?;
    let request = admin::ImageServiceUpdateRequest {
        id: update.id,
        update_meta: server_lock(),
        url: update.url,
        name: update.name,
        description: update.description,
        features: Vec::new(),
        classification: class.unwrap_or_default(),
        expires_at: update.expires.map(from_now),
        labels: label_patch(&flags)?,
    };
    given(
        app.client
            .admin_images()
            .update(request)
            .await?
            .into_inner()
            .image,
    )
}

fn check_digest(digest: &str) -> Result<()> {
    let hex = digest
        .split_once(':')
        .map(|(_, hex)| hex)
        .unwrap_or_default();
    let whole = matches!(hex.len(), 64 | 128) && hex.bytes().all(|b| b.is_ascii_hexdigit());
    ensure!(
        whole,
        "{digest:?} is not sha256:HEX or sha512:HEX; see: sha256sum FILE"
    );
    Ok(())
}

fn made(create: ImageCreateArgs) -> Result<Image> {
    let mut labels = pairs(&create.labels)?;
    if let Some(digest) = create.digest {
        check_digest(&digest)?;
        labels.insert(DIGEST_LABEL.to_owned(), digest);
    }
    let features = create.features.iter().map(|text| enum_value(FEATURE, text));
    Ok(Image {
        id: create.id,
        meta: Some(Meta {
            labels: Some(Labels { labels }),
            ..Default::default()
        }),
        url: create.url,
        name: create.name,
        description: create.description,
        features: features.collect::<Result<_>>()?,
        classification: enum_value(CLASS, &create.classification)?,
        expires_at: Some(from_now(create.expires)),
    })
}

async fn usage(app: &App, id: Option<String>) -> Result<()> {
    let query = ImageQuery {
        id,
        ..Default::default()
    };
    let request = admin::ImageServiceUsageRequest { query: Some(query) };
    let answer = app.client.admin_images().usage(request).await?;
    app.output.list(&answer.into_inner().image_usage)
}
