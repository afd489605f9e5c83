//! `metalmesh filesystem`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::admin::v2::filesystem_service_match_request::Match;
use proto_public::api::v2::{FilesystemServiceGetRequest, FilesystemServiceListRequest};

use super::given;
use crate::app::App;
use crate::files;
use crate::output::from_json;

#[derive(Debug, Subcommand)]
pub(crate) enum FilesystemCommand {
    /// Create a layout from a file, in the form that `show -o yaml` prints.
    Create {
        /// File with the layout, YAML or JSON; `-` is stdin.
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
    },
    /// List layouts.
    #[command(visible_alias = "list")]
    Ls,
    /// Show a layout.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the filesystem layout.
        id: String,
    },
    /// Show the layout that machines of a size get for an image.
    Match {
        /// Id of the size.
        #[arg(long)]
        size: String,
        /// Id of the image.
        #[arg(long)]
        image: String,
    },
    /// Delete a layout.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the filesystem layout.
        id: String,
    },
}

pub(crate) async fn run(app: &App, command: FilesystemCommand) -> Result<()> {
    match command {
        FilesystemCommand::Create { file } => {
            let text = files::read(&file)?;
            let value = files::yaml(&text)
                .with_context(|| format!("{} is neither YAML nor JSON", file.display()))?;
            let layout = from_json("metalstack.api.v2.FilesystemLayout", &value)?;
            let request = admin::FilesystemServiceCreateRequest {
                filesystem_layout: Some(layout),
            };
            let answer = app
                .client
                .admin_filesystems()
                .create(request)
                .await?
                .into_inner();
            app.output.one(&given(answer.filesystem_layout)?)
        }
        FilesystemCommand::Ls => {
            let request = FilesystemServiceListRequest { id: None };
            let answer = app.client.filesystems().list(request).await?.into_inner();
            app.output.list(&answer.filesystem_layouts)
        }
        FilesystemCommand::Show { id } => {
            let request = FilesystemServiceGetRequest { id };
            let answer = app.client.filesystems().get(request).await?.into_inner();
            app.output.one(&given(answer.filesystem_layout)?)
        }
        FilesystemCommand::Match { size, image } => {
            let pair = Match::SizeAndImage(admin::MatchImageAndSize { size, image });
            let request = admin::FilesystemServiceMatchRequest {
                r#match: Some(pair),
            };
            let answer = app
                .client
                .admin_filesystems()
                .r#match(request)
                .await?
                .into_inner();
            app.output.one(&given(answer.filesystem_layout)?)
        }
        FilesystemCommand::Rm { id } => {
            let request = admin::FilesystemServiceDeleteRequest { id };
            let answer = app
                .client
                .admin_filesystems()
                .delete(request)
                .await?
                .into_inner();
            app.output.one(&given(answer.filesystem_layout)?)
        }
    }
}
