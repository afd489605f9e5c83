//! `metalmesh tenant`.

use anyhow::Result;
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    TenantMember, TenantQuery, TenantServiceAddMemberRequest, TenantServiceDeleteRequest,
    TenantServiceGetRequest, TenantServiceLeaveRequest, TenantServiceListRequest,
    TenantServiceRemoveMemberRequest, TenantServiceUpdateMemberRequest, TenantServiceUpdateRequest,
};

use super::{given, invite, label_patch, server_lock};
use crate::app::App;
use crate::output::{TableRow, print_table};
use crate::text::{age, enum_text, enum_value, labels};

const ROLE: &str = "metalstack.api.v2.TenantRole";

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Create a tenant; its name is its login.
    Create {
        /// Name of the tenant, which is also its login.
        name: String,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
        /// Email address.
        #[arg(long)]
        email: Option<String>,
        /// Set a label. Repeatable.
        #[arg(long = "label", value_name = "NAME=VALUE")]
        labels: Vec<String>,
    },
    /// List tenants.
    #[command(visible_alias = "list")]
    Ls,
    /// Show a tenant and its members.
    #[command(visible_alias = "describe")]
    Show {
        /// Login of the tenant.
        tenant: String,
    },
    /// Change a tenant.
    Update {
        /// Login of the tenant.
        tenant: String,
        /// Display name.
        #[arg(long)]
        name: Option<String>,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
        /// Email address.
        #[arg(long)]
        email: Option<String>,
        /// Set (`a=b`) or remove (`a-`) a label. Repeatable.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Delete a tenant without projects.
    #[command(visible_alias = "delete")]
    Rm {
        /// Login of the tenant.
        tenant: String,
    },
    /// Give a user a role in a tenant, or change the role.
    #[command(alias = "add-member")]
    SetMember {
        /// Login of the tenant.
        tenant: String,
        /// Login of the user.
        member: String,
        /// Role: owner, editor, viewer or guest.
        #[arg(long, default_value = "viewer")]
        role: String,
    },
    /// Remove a user's role in a tenant.
    RmMember {
        /// Login of the tenant.
        tenant: String,
        /// Login of the user.
        member: String,
    },
    /// Give up your own role in a tenant.
    Leave {
        /// Login of the tenant.
        tenant: String,
    },
    /// Invite users to a tenant, or accept an invite.
    #[command(subcommand)]
    Invite(invite::InviteCommand),
}

pub(crate) async fn run(app: &App, command: TenantCommand) -> Result<()> {
    match command {
        TenantCommand::Create {
            name,
            description,
            email,
            labels: flags,
        } => {
            let labels = labels(&flags)?;
            let request = admin::TenantServiceCreateRequest {
                name,
                description,
                email,
                labels,
                avatar_url: None,
            };
            let answer = app
                .client
                .admin_tenants()
                .create(request)
                .await?
                .into_inner();
            app.output.one(&given(answer.tenant)?)
        }
        TenantCommand::Ls => list(app).await,
        TenantCommand::Show { tenant } => show(app, tenant).await,
        TenantCommand::Update {
            tenant,
            name,
            description,
            email,
            labels,
        } => {
            let request = TenantServiceUpdateRequest {
                login: tenant,
                update_meta: server_lock(),
                name,
                email,
                description,
                avatar_url: None,
                labels: label_patch(&labels)?,
            };
            let answer = app.client.tenants().update(request).await?.into_inner();
            app.output.one(&given(answer.tenant)?)
        }
        TenantCommand::Rm { tenant } => remove(app, tenant).await,
        TenantCommand::SetMember {
            tenant,
            member,
            role,
        } => set_member(app, tenant, member, &role).await,
        TenantCommand::Leave { tenant } => {
            let request = TenantServiceLeaveRequest { login: tenant };
            app.client.tenants().leave(request).await?;
            Ok(())
        }
        TenantCommand::RmMember { tenant, member } => {
            let request = TenantServiceRemoveMemberRequest {
                login: tenant,
                member,
            };
            app.client.tenants().remove_member(request).await?;
            Ok(())
        }
        TenantCommand::Invite(command) => invite::tenant(app, command).await,
    }
}

async fn remove(app: &App, login: String) -> Result<()> {
    let request = TenantServiceDeleteRequest { login };
    let answer = app.client.tenants().delete(request).await?.into_inner();
    app.output.one(&given(answer.tenant)?)
}

/// Adds a member, or changes the role of an existing one.
async fn set_member(app: &App, login: String, member: String, role: &str) -> Result<()> {
    let role = enum_value(ROLE, role)?;
    let add = TenantServiceAddMemberRequest {
        login: login.clone(),
        member: member.clone(),
        role,
    };
    match app.client.tenants().add_member(add).await {
        Err(status) if status.code() == tonic::Code::AlreadyExists => {
            let update = TenantServiceUpdateMemberRequest {
                login,
                member,
                role,
            };
            app.client.tenants().update_member(update).await?;
            Ok(())
        }
        other => Ok(other.map(drop)?),
    }
}

/// Lists all tenants for an administrator, else the tenants that the caller belongs to.
async fn list(app: &App) -> Result<()> {
    let query = Some(TenantQuery::default());
    let all = admin::TenantServiceListRequest {
        query: query.clone(),
    };
    let tenants = match app.client.admin_tenants().list(all).await {
        Ok(answer) => answer.into_inner().tenants,
        Err(status) if status.code() == tonic::Code::PermissionDenied => {
            let own = TenantServiceListRequest { query };
            app.client.tenants().list(own).await?.into_inner().tenants
        }
        Err(status) => return Err(status.into()),
    };
    app.output.list(&tenants)
}

async fn show(app: &App, login: String) -> Result<()> {
    let request = TenantServiceGetRequest { login };
    let answer = app.client.tenants().get(request).await?.into_inner();
    let tenant = given(answer.tenant)?;
    let members = answer.tenant_members;
    app.output.one_with(&tenant, |tenant| {
        print_table(
            &proto_public::api::v2::Tenant::titles(true),
            [tenant.cells(true)],
        );
        outln!();
        let row = |member: &TenantMember| {
            let role = enum_text(ROLE, member.role);
            let joined = age(member.created_at.as_ref());
            vec![member.id.clone(), role, joined]
        };
        print_table(&["member", "role", "age"], members.iter().map(row));
    })
}
