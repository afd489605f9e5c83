//! `metalmesh tenant invite` and `metalmesh project invite`.
//!
//! Secrets come from a file or from stdin: what is on a command line, others see.

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
pub(crate) enum Command {
    /// Make an invite and print its secret: whoever is told it joins, once, within seven days.
    Create {
        /// Into which tenant (login) or project (id or name).
        #[arg(value_name = "WHERE")]
        place: String,
        /// What the new member may do: owner, editor or viewer.
        #[arg(long, default_value = "viewer")]
        role: String,
    },
    /// List open invites.
    #[command(visible_alias = "list")]
    Ls {
        #[arg(value_name = "WHERE")]
        place: String,
    },
    /// Show what a secret leads into.
    #[command(visible_alias = "describe")]
    Show(Secret),
    /// Join.
    Accept(Secret),
    /// Take an invite back.
    #[command(visible_alias = "delete")]
    Rm {
        #[arg(value_name = "WHERE")]
        place: String,
        #[command(flatten)]
        secret: Secret,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Secret {
    /// File with the secret; stdin without one.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "-",
        hide_default_value = true
    )]
    secret_file: PathBuf,
}

impl Secret {
    fn read(&self) -> Result<String> {
        if self.secret_file == Path::new("-") && std::io::IsTerminal::is_terminal(&std::io::stdin())
        {
            noteln!("Type or paste the secret, then press Ctrl-D:");
        }
        files::read_token(&self.secret_file).context("the invite's secret cannot be read")
    }
}

pub(crate) async fn tenant(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Create { place, role } => {
            let request = TenantServiceInviteRequest {
                login: place,
                role: enum_value("metalstack.api.v2.TenantRole", &role)?,
            };
            let answer = app.client.tenants().invite(request).await?.into_inner();
            let made: TenantInvite = given(answer.invite)?;
            app.output.secret(&made.secret, &to_json(&made)?)
        }
        Command::Ls { place } => {
            let request = TenantServiceInvitesListRequest { login: place };
            let answer = app.client.tenants().invites_list(request).await?;
            app.output.list(&answer.into_inner().invites)
        }
        Command::Show(secret) => {
            let secret = secret.read()?;
            let request = TenantServiceInviteGetRequest { secret };
            let answer = app.client.tenants().invite_get(request).await?.into_inner();
            app.output.one::<TenantInvite>(&given(answer.invite)?)
        }
        Command::Accept(secret) => {
            let secret = secret.read()?;
            let request = TenantServiceInviteAcceptRequest { secret };
            let joined = app.client.tenants().invite_accept(request).await?;
            let joined = joined.into_inner();
            noteln!("Joined tenant {} ({}).", joined.tenant, joined.tenant_name);
            Ok(())
        }
        Command::Rm { place, secret } => {
            let request = TenantServiceInviteDeleteRequest {
                login: place,
                secret: secret.read()?,
            };
            app.client.tenants().invite_delete(request).await?;
            Ok(())
        }
    }
}

pub(crate) async fn project(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Create { place, role } => {
            let request = ProjectServiceInviteRequest {
                project: app.project_id(&place).await?,
                role: enum_value("metalstack.api.v2.ProjectRole", &role)?,
            };
            let answer = app.client.projects().invite(request).await?.into_inner();
            let made: ProjectInvite = given(answer.invite)?;
            app.output.secret(&made.secret, &to_json(&made)?)
        }
        Command::Ls { place } => {
            let project = app.project_id(&place).await?;
            let request = ProjectServiceInvitesListRequest { project };
            let answer = app.client.projects().invites_list(request).await?;
            app.output.list(&answer.into_inner().invites)
        }
        Command::Show(secret) => {
            let secret = secret.read()?;
            let request = ProjectServiceInviteGetRequest { secret };
            let answer = app.client.projects().invite_get(request).await?;
            app.output
                .one::<ProjectInvite>(&given(answer.into_inner().invite)?)
        }
        Command::Accept(secret) => {
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
        Command::Rm { place, secret } => {
            let request = ProjectServiceInviteDeleteRequest {
                project: app.project_id(&place).await?,
                secret: secret.read()?,
            };
            app.client.projects().invite_delete(request).await?;
            Ok(())
        }
    }
}
