//! `metalmesh tenant invite` and `metalmesh project invite`.
//!
//! Secrets come from a file or from stdin, as other users of the host see command lines.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use proto_public::api::v2::{
    ProjectInvite, ProjectServiceInviteAcceptRequest, ProjectServiceInviteDeleteRequest,
    ProjectServiceInviteGetRequest, ProjectServiceInviteRequest, ProjectServiceInvitesListRequest,
    TenantInvite, TenantServiceInviteAcceptRequest, TenantServiceInviteDeleteRequest,
    TenantServiceInviteGetRequest, TenantServiceInviteRequest, TenantServiceInvitesListRequest,
};

use super::given;
use crate::app::App;
use crate::files;
use crate::output::to_json;
use crate::text::enum_value;

#[derive(Debug, Subcommand)]
pub(crate) enum InviteCommand {
    /// Create an invite and print its secret. One user can join with it, within seven days.
    Create {
        /// Tenant (login) or project (id or name) of the invite.
        #[arg(value_name = "WHERE")]
        place: String,
        /// Role of the new member: owner, editor or viewer.
        #[arg(long, default_value = "viewer")]
        role: String,
    },
    /// List open invites.
    #[command(visible_alias = "list")]
    Ls {
        /// Tenant (login) or project (id or name).
        #[arg(value_name = "WHERE")]
        place: String,
    },
    /// Show the invite of a secret: its tenant or project, and the role.
    #[command(visible_alias = "describe")]
    Show(InviteSecretArgs),
    /// Accept an invite: join its tenant or project.
    Accept(InviteSecretArgs),
    /// Withdraw an invite.
    #[command(visible_alias = "delete")]
    Rm {
        /// Tenant (login) or project (id or name) of the invite.
        #[arg(value_name = "WHERE")]
        place: String,
        #[command(flatten)]
        secret: InviteSecretArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InviteSecretArgs {
    /// File with the secret; without it the secret is read from stdin.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "-",
        hide_default_value = true
    )]
    secret_file: PathBuf,
}

impl InviteSecretArgs {
    fn read(&self) -> Result<String> {
        if self.secret_file == Path::new("-") && std::io::IsTerminal::is_terminal(&std::io::stdin())
        {
            noteln!("Type or paste the secret, then press Ctrl-D:");
        }
        files::read_token(&self.secret_file).context("the invite's secret cannot be read")
    }
}

pub(crate) async fn tenant(app: &App, command: InviteCommand) -> Result<()> {
    match command {
        InviteCommand::Create { place, role } => {
            let request = TenantServiceInviteRequest {
                login: place,
                role: enum_value("metalstack.api.v2.TenantRole", &role)?,
            };
            let answer = app.client.tenants().invite(request).await?.into_inner();
            let made: TenantInvite = given(answer.invite)?;
            app.output.secret(&made.secret, &to_json(&made)?)
        }
        InviteCommand::Ls { place } => {
            let request = TenantServiceInvitesListRequest { login: place };
            let answer = app.client.tenants().invites_list(request).await?;
            app.output.list(&answer.into_inner().invites)
        }
        InviteCommand::Show(secret) => {
            let secret = secret.read()?;
            let request = TenantServiceInviteGetRequest { secret };
            let answer = app.client.tenants().invite_get(request).await?.into_inner();
            app.output.one::<TenantInvite>(&given(answer.invite)?)
        }
        InviteCommand::Accept(secret) => {
            let secret = secret.read()?;
            let request = TenantServiceInviteAcceptRequest { secret };
            let joined = app.client.tenants().invite_accept(request).await?;
            let joined = joined.into_inner();
            noteln!("Joined tenant {} ({}).", joined.tenant, joined.tenant_name);
            Ok(())
        }
        InviteCommand::Rm { place, secret } => {
            let request = TenantServiceInviteDeleteRequest {
                login: place,
                secret: secret.read()?,
            };
            app.client.tenants().invite_delete(request).await?;
            Ok(())
        }
    }
}

pub(crate) async fn project(app: &App, command: InviteCommand) -> Result<()> {
    match command {
        InviteCommand::Create { place, role } => {
            let request = ProjectServiceInviteRequest {
                project: app.project_id(&place).await?,
                role: enum_value("metalstack.api.v2.ProjectRole", &role)?,
            };
            let answer = app.client.projects().invite(request).await?.into_inner();
            let made: ProjectInvite = given(answer.invite)?;
            app.output.secret(&made.secret, &to_json(&made)?)
        }
        InviteCommand::Ls { place } => {
            let project = app.project_id(&place).await?;
            let request = ProjectServiceInvitesListRequest { project };
            let answer = app.client.projects().invites_list(request).await?;
            app.output.list(&answer.into_inner().invites)
        }
        InviteCommand::Show(secret) => {
            let secret = secret.read()?;
            let request = ProjectServiceInviteGetRequest { secret };
            let answer = app.client.projects().invite_get(request).await?;
            app.output
                .one::<ProjectInvite>(&given(answer.into_inner().invite)?)
        }
        InviteCommand::Accept(secret) => {
            let secret = secret.read()?;
            let request = ProjectServiceInviteAcceptRequest { secret };
            let joined = app.client.projects().invite_accept(request).await?;
            let joined = joined.into_inner();
            noteln!(
                "Joined project {} ({}).",
                joined.project,
                joined.project_name
            );
            Ok(())
        }
        InviteCommand::Rm { place, secret } => {
            let request = ProjectServiceInviteDeleteRequest {
                project: app.project_id(&place).await?,
                secret: secret.read()?,
            };
            app.client.projects().invite_delete(request).await?;
            Ok(())
        }
    }
}
