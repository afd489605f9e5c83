//! `metalmesh claim`: hosts out of pools, for a project.

mod select;
mod show;
mod spec;
mod write;

use anyhow::Result;
use clap::{Args, Subcommand};
use proto_public::metalmesh::tenant::v1::{
    Claim, ClaimServiceClearHoldRequest, ClaimServiceDeleteRequest, ClaimServiceGetRequest,
    ClaimServiceListRequest, ClaimServiceRebootRequest, ClaimServiceSetHoldRequest,
};

use self::write::{ClaimCreateArgs, ClaimUpdateArgs};
use super::given;
use crate::app::App;
use crate::text::pairs;

#[derive(Debug, Subcommand)]
pub(crate) enum ClaimCommand {
    /// Claim a host. The same call again returns the same claim.
    Create(Box<ClaimCreateArgs>),
    /// List claims and their states.
    #[command(visible_alias = "list")]
    Ls {
        /// Only claims with this label. Repeatable.
        #[arg(long = "label", value_name = "NAME=VALUE")]
        labels: Vec<String>,
    },
    /// Show a claim: its host, conditions and events.
    #[command(visible_alias = "describe")]
    Show {
        /// Name or id of the claim.
        claim: String,
    },
    /// Change a claim.
    Update(Box<ClaimUpdateArgs>),
    /// Delete a claim: its host is wiped before anybody else gets it.
    #[command(visible_alias = "delete")]
    Rm(ClaimTarget),
    /// Reboot the host of a claim.
    Reboot {
        #[command(flatten)]
        target: ClaimTarget,
        /// Power off and on instead of a reset.
        #[arg(long)]
        hard: bool,
        /// Id of the request: the same id reboots once. Random by default.
        #[arg(long, value_name = "ID")]
        request_id: Option<String>,
    },
    /// Keep the host of a claim off until the hold is ended.
    Hold {
        #[command(flatten)]
        target: ClaimTarget,
        /// Key of the hold: each is ended by itself.
        #[arg(long, default_value = "cli")]
        key: String,
        /// Why, free text.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// End a hold of the project.
    Unhold {
        #[command(flatten)]
        target: ClaimTarget,
        /// Key of the hold.
        #[arg(long, default_value = "cli")]
        key: String,
    },
}

/// The claim of a command.
#[derive(Debug, Args)]
pub(crate) struct ClaimTarget {
    /// Name or id of the claim.
    claim: String,
    /// Refuse if the claim has another host since: the epoch that it showed.
    #[arg(long, value_name = "NUMBER")]
    epoch: Option<u64>,
}

pub(crate) async fn run(app: &App, command: ClaimCommand) -> Result<()> {
    let project = app.need_project().await?;
    let mut claims = app.client.claims();
    match command {
        ClaimCommand::Create(create) => write::create(app, project, *create).await,
        ClaimCommand::Ls { labels } => {
            let labels = pairs(&labels)?;
            let request = ClaimServiceListRequest { project, labels };
            let answer = claims.list(request).await?.into_inner();
            app.output.list(&answer.claims)
        }
        ClaimCommand::Show { claim } => {
            let found = read(app, &project, &claim).await?;
            app.output.one_with(&found, show::details)
        }
        ClaimCommand::Update(update) => write::update(app, project, *update).await,
        ClaimCommand::Rm(target) => {
            let request = ClaimServiceDeleteRequest {
                project,
                claim: target.claim,
                expected_uuid: None,
                expected_epoch: target.epoch,
            };
            let answer = claims.delete(request).await?.into_inner();
            app.output.one(&given(answer.claim)?)
        }
        ClaimCommand::Reboot {
            target,
            hard,
            request_id,
        } => {
            let random = || uuid::Uuid::now_v7().to_string();
            let request = ClaimServiceRebootRequest {
                project,
                claim: target.claim,
                expected_epoch: target.epoch,
                request: request_id.unwrap_or_else(random),
                mode: if hard { "hard" } else { "soft" }.to_owned(),
            };
            let answer = claims.reboot(request).await?.into_inner();
            app.output.one(&given(answer.claim)?)
        }
        ClaimCommand::Hold {
            target,
            key,
            reason,
        } => {
            let request = ClaimServiceSetHoldRequest {
                project,
                claim: target.claim,
                expected_epoch: target.epoch,
                key,
                reason,
            };
            let answer = claims.set_hold(request).await?.into_inner();
            app.output.one(&given(answer.claim)?)
        }
        ClaimCommand::Unhold { target, key } => {
            let request = ClaimServiceClearHoldRequest {
                project,
                claim: target.claim,
                expected_epoch: target.epoch,
                key,
            };
            let answer = claims.clear_hold(request).await?.into_inner();
            app.output.one(&given(answer.claim)?)
        }
    }
}

async fn read(app: &App, project: &str, claim: &str) -> Result<Claim> {
    let request = ClaimServiceGetRequest {
        project: project.to_owned(),
        claim: claim.to_owned(),
    };
    let answer = app.client.claims().get(request).await?.into_inner();
    given(answer.claim)
}
