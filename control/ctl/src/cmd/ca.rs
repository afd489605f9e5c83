//! `metalmesh ca`: the certificate authority, and its replacement.

use anyhow::Result;
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{CaRotation, CaServiceGetRequest, CaServiceRotateRequest};
use serde_json::json;

use super::given;
use crate::app::App;
use crate::output::to_json;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the trusted roots, and how far a replacement is.
    Show,
    /// Make a new root and new intermediates; the old ones are trusted until the overlap is over.
    Rotate(Rotate),
}

#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// How long both are trusted; 30 days, with --force an hour.
    #[arg(long, value_name = "MINUTES", default_value_t = 0)]
    overlap_minutes: u32,
    /// Have everybody renew now; the old one goes once they did, or when the overlap is over.
    /// Hurries a replacement that is under way.
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut authority = app.client.authority();
    match command {
        Command::Show => {
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
        Command::Rotate(rotate) => {
            let request = CaServiceRotateRequest {
                overlap_minutes: rotate.overlap_minutes,
                force: rotate.force,
            };
            let answer = authority.rotate(request).await?.into_inner();
            app.output.one(&given(answer.rotation)?)
        }
    }
}
