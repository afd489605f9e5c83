//! `metalmesh project`.

use anyhow::Result;
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    Project, ProjectQuery, ProjectServiceAddMemberRequest, ProjectServiceCreateRequest,
    ProjectServiceDeleteRequest, ProjectServiceGetRequest, ProjectServiceLeaveRequest,
    ProjectServiceListRequest, ProjectServiceRemoveMemberRequest,
    ProjectServiceUpdateMemberRequest, ProjectServiceUpdateRequest,
};
use tonic::Code;

use super::{given, invite, label_patch, server_lock};
use crate::app::App;
use crate::output::{TableRow, print_table};
use crate::text::{enum_text, enum_value, labels};

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Create a project.
    Create {
        /// Name of the project.
        name: String,
        /// Tenant of the project.
        #[arg(long)]
        tenant: String,
        /// Description, free text.
        #[arg(long, default_value = "")]
        description: String,
        /// Set a label. Repeatable.
        #[arg(long = "label", value_name = "NAME=VALUE")]
        labels: Vec<String>,
    },
    /// List projects.
    #[command(visible_alias = "list")]
    Ls {
        /// Only projects of this tenant.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Show a project and its members.
    #[command(visible_alias = "describe")]
    Show {
        /// Project, by id or name.
        project: String,
    },
    /// Change a project.
    Update {
        /// Project, by id or name.
        project: String,
        /// Display name.
        #[arg(long)]
        name: Option<String>,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
        /// Set (`a=b`) or remove (`a-`) a label. Repeatable.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Delete an empty project.
    #[command(visible_alias = "delete")]
    Rm {
        /// Project, by id or name.
        project: String,
    },
    /// Give a user a role in a project, or change the role.
    SetMember {
        /// Project, by id or name.
        project: String,
        /// Login of the user.
        member: String,
        /// Role: owner, editor or viewer.
        #[arg(long, default_value = "viewer")]
        role: String,
    },
    /// Remove a user's role in a project.
    RmMember {
        /// Project, by id or name.
        project: String,
        /// Login of the user.
        member: String,
    },
    /// Give up your own role in a project.
    Leave {
        /// Project, by id or name.
        project: String,
    },
    /// Invite users to a project, or accept an invite.
    #[command(subcommand)]
    Invite(invite::InviteCommand),
}

pub(crate) async fn run(app: &App, command: ProjectCommand) -> Result<()> {
    match command {
        ProjectCommand::Create {
            name,
            tenant,
            description,
            labels: flags,
        } => {
            let request = ProjectServiceCreateRequest {
                login: tenant,
                name,
                description,
                avatar_url: None,
                labels: labels(&flags)?,
            };
            let answer = app.client.projects().create(request).await?.into_inner();
            app.output.one(&given(answer.project)?)
        }
        ProjectCommand::Ls { tenant } => list(app, tenant).await,
        ProjectCommand::Show { project } => show(app, &project).await,
        ProjectCommand::Update {
            project,
            name,
            description,
            labels,
        } => {
            let request = ProjectServiceUpdateRequest {
                project: app.project_id(&project).await?,
                update_meta: server_lock(),
                name,
                description,
                avatar_url: None,
                labels: label_patch(&labels)?,
            };
            let answer = app.client.projects().update(request).await?.into_inner();
            app.output.one(&given(answer.project)?)
        }
        ProjectCommand::Rm { project } => {
            let project = app.project_id(&project).await?;
            let request = ProjectServiceDeleteRequest { project };
            let answer = app.client.projects().delete(request).await?.into_inner();
            app.output.one(&given(answer.project)?)
        }
        ProjectCommand::SetMember {
            project,
            member,
            role,
        } => set_member(app, &project, member, &role).await,
        ProjectCommand::RmMember { project, member } => {
            let project = app.project_id(&project).await?;
            let request = ProjectServiceRemoveMemberRequest { project, member };
            app.client.projects().remove_member(request).await?;
            Ok(())
        }
        ProjectCommand::Leave { project } => {
            let project = app.project_id(&project).await?;
            let request = ProjectServiceLeaveRequest { project };
            app.client.projects().leave(request).await?;
            Ok(())
        }
        ProjectCommand::Invite(command) => invite::project(app, command).await,
    }
}

/// Adds a member, or changes the role of an existing one.
async fn set_member(app: &App, project: &str, member: String, role: &str) -> Result<()> {
    let project = app.project_id(project).await?;
    let role = enum_value("metalstack.api.v2.ProjectRole", role)?;
    let add = ProjectServiceAddMemberRequest {
        project: project.clone(),
        member: member.clone(),
        role,
    };
    match app.client.projects().add_member(add).await {
        Err(status) if status.code() == Code::AlreadyExists => {
            let update = ProjectServiceUpdateMemberRequest {
                project,
                member,
                role,
            };
            app.client.projects().update_member(update).await?;
            Ok(())
        }
        other => Ok(other.map(drop)?),
    }
}

async fn list(app: &App, tenant: Option<String>) -> Result<()> {
    let query = ProjectQuery {
        tenant,
        ..Default::default()
    };
    let all = admin::ProjectServiceListRequest {
        query: Some(query.clone()),
    };
    let projects = match app.client.admin_projects().list(all).await {
        Ok(answer) => answer.into_inner().projects,
        Err(status) if status.code() == Code::PermissionDenied => {
            let own = ProjectServiceListRequest { query: Some(query) };
            app.client.projects().list(own).await?.into_inner().projects
        }
        Err(status) => return Err(status.into()),
    };
    app.output.list(&projects)
}

async fn show(app: &App, project: &str) -> Result<()> {
    let request = ProjectServiceGetRequest {
        project: app.project_id(project).await?,
    };
    let answer = app.client.projects().get(request).await?.into_inner();
    let members = answer.project_members;
    app.output.one_with(&given(answer.project)?, |project| {
        print_table(&Project::titles(true), [project.cells(true)]);
        outln!();
        let rows = members.iter().map(|member| {
            let role = enum_text("metalstack.api.v2.ProjectRole", member.role);
            let from = if member.inherited_membership {
                "tenant"
            } else {
                "project"
            };
            vec![member.id.clone(), role, from.to_owned()]
        });
        print_table(&["member", "role", "through"], rows);
    })
}
