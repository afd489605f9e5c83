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

/// Label that holds the digest of the image's file.
const DIGEST_LABEL: &str = "metalmesh.dev/digest";
/// Label that says where control found it.
const SOURCE_LABEL: &str = "metalmesh.dev/digest-source";
const FEATURE: &str = "metalstack.api.v2.ImageFeature";
const CLASS: &str = "metalstack.api.v2.ImageClassification";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Register an image; its id is OS-MAJOR.MINOR[.PATCH].
    Create(Create),
    /// List images.
    #[command(visible_alias = "list")]
    Ls,
    /// Show an image.
    #[command(visible_alias = "describe")]
    Show { id: String },
    /// The newest image of an operating system.
    Latest { os: String },
    /// Which machines run an image, or every image.
    Usage { id: Option<String> },
    /// Change an image.
    Update(Update),
    /// Delete an unused image.
    #[command(visible_alias = "delete")]
    Rm { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    id: String,
    /// Where machines load it from: a tar archive, zstd.
    #[arg(long)]
    url: String,
    /// sha256:HEX or sha512:HEX of the file. Without it control takes the one at URL.sha256 or
    /// URL.sha512, or reads the file, which may take minutes.
    #[arg(long)]
    digest: Option<String>,
    #[arg(long)]
    name: Option<String>,
    #[arg(long)]
    description: Option<String>,
    /// machine or firewall.
    #[arg(long = "feature", default_values_t = ["machine".to_owned()])]
    features: Vec<String>,
    /// preview, supported or deprecated.
    #[arg(long, default_value = "supported")]
    classification: String,
    /// Valid for so long from now.
    #[arg(long, default_value = "90d", value_parser = parse_duration)]
    expires: Duration,
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    id: String,
    #[arg(long)]
    url: Option<String>,
    /// sha256:HEX or sha512:HEX of the file at the URL. Without it control finds that of a new
    /// URL; to have it look at the same URL again: --label metalmesh.dev/digest-
    #[arg(long)]
    digest: Option<String>,
    #[arg(long)]
    name: Option<String>,
    #[arg(long)]
    description: Option<String>,
    /// preview, supported or deprecated.
    #[arg(long)]
    classification: Option<String>,
    /// Valid for so long from now.
    #[arg(long, value_parser = parse_duration)]
    expires: Option<Duration>,
    /// Set (`a=b`) or remove (`a-`) a label.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => {
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
        Command::Ls => {
            let request = ImageServiceListRequest { query: None };
            app.output
                .list(&app.client.images().list(request).await?.into_inner().images)
        }
        Command::Show { id } => {
            let answer = app
                .client
                .images()
                .get(ImageServiceGetRequest { id })
                .await?;
            app.output.one(&given(answer.into_inner().image)?)
        }
        Command::Latest { os } => {
            let request = ImageServiceLatestRequest {
                os,
                classification: None,
            };
            let answer = app.client.images().latest(request).await?.into_inner();
            app.output.one(&given(answer.image)?)
        }
        Command::Update(update) => {
            let image = changed(app, update).await?;
            note_digest(&image);
            app.output.one(&image)
        }
        Command::Usage { id } => usage(app, id).await,
        Command::Rm { id } => {
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

/// Says which digest control found, and where.
fn note_digest(image: &Image) {
    let labels = image.meta.as_ref().and_then(|meta| meta.labels.as_ref());
    let label = |key| labels.and_then(|labels| labels.labels.get(key));
    if let (Some(digest), Some(source)) = (label(DIGEST_LABEL), label(SOURCE_LABEL)) {
        noteln!("digest found by control ({source}): {digest}");
    }
}

async fn changed(app: &App, update: Update) -> Result<Image> {
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

fn made(create: Create) -> Result<Image> {
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
