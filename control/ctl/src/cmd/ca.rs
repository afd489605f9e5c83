//! `metalmesh ca`: the certificate authority, and its replacement.

use anyhow::Result;
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{CaRotation, CaServiceGetRequest, CaServiceRotateRequest};
use serde_json::json;

use super::given;
use crate::app::App;
use crate::output::to_json;

#[derive(Debug, Subcommand)]
pub(crate) enum CaCommand {
    /// Show the trusted roots and the progress of a rotation.
    Show,
    /// Create a new root and new intermediates; the old ones are trusted until the overlap ends.
    Rotate(CaRotateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CaRotateArgs {
    /// How long both roots are trusted, in minutes; 0 means 30 days, or one hour with --force.
    #[arg(long, value_name = "MINUTES", default_value_t = 0)]
    overlap_minutes: u32,
    /// Make all agents and machines renew now. The old root is removed once they did, or when the
    /// overlap ends. Speeds up a rotation that is in progress.
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(app: &App, command: CaCommand) -> Result<()> {
    let mut authority = app.client.authority();
    match command {
        CaCommand::Show => {
            let answer = authority.get(CaServiceGetRequest {}).await?.into_inner();
            if app.output.is_table() {
                app.output.list(&answer.roots)?;
                if let Some(rotation) = &answer.rotation {
                    outln!();
                    app.output.one::<CaRotation>(rotation)?;
                }
                return Ok(());
            }
            let roots: Vec<_> = answer.roots.iter().map(to_json).collect::<Result<_>>()?;
            let rotation = answer.rotation.as_ref().map(to_json).transpose()?;
            app.output
                .value(&json!({ "roots": roots, "rotation": rotation }))
        }
        CaCommand::Rotate(rotate) => {
            let request = CaServiceRotateRequest {
                overlap_minutes: rotate.overlap_minutes,
                force: rotate.force,
            };
            let answer = authority.rotate(request).await?.into_inner();
            app.output.one(&given(answer.rotation)?)
        }
    }
}
