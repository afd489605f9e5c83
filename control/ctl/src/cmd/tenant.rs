//! `metalmesh tenant`.

use anyhow::Result;
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    TenantMember, TenantQuery, TenantServiceGetRequest, TenantServiceListRequest,
    TenantServiceUpdateRequest,
};

use super::{given, invite, label_patch, server_lock};
use crate::app::App;
use crate::output::{Row, print_table};
use crate::text::{age, enum_text, enum_value, labels};

const ROLE: &str = "metalstack.api.v2.TenantRole";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a tenant; its name is its login.
    Create {
        name: String,
        #[arg(long)]
        description: Option<String>,
        #[arg(long)]
        email: Option<String>,
        #[arg(long = "label", value_name = "NAME=VALUE")]
        labels: Vec<String>,
    },
    /// List tenants.
    #[command(visible_alias = "list")]
    Ls,
    /// Show a tenant and its members.
    #[command(visible_alias = "describe")]
    Show { tenant: String },
    /// Change a tenant.
    Update {
        tenant: String,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        description: Option<String>,
        #[arg(long)]
        email: Option<String>,
        /// Set (`a=b`) or remove (`a-`) a label.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Give a tenant's user a role in another tenant.
    AddMember {
        tenant: String,
        member: String,
        /// owner, editor, viewer or guest.
        #[arg(long, default_value = "viewer")]
        role: String,
    },
    /// Take the role away.
    RmMember { tenant: String, member: String },
    /// Invite others into a tenant, or accept an invite.
    #[command(subcommand)]
    Invite(invite::Command),
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Create {
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
        Command::Ls => list(app).await,
        Command::Show { tenant } => show(app, tenant).await,
        Command::Update {
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
        Command::AddMember {
            tenant,
            member,
            role,
        } => {
            let role = enum_value(ROLE, &role)?;
            let request = admin::TenantServiceAddMemberRequest {
                tenant,
                member,
                role,
            };
            app.client.admin_tenants().add_member(request).await?;
            Ok(())
        }
        Command::RmMember { tenant, member } => {
            let request = admin::TenantServiceRemoveMemberRequest { tenant, member };
            app.client.admin_tenants().remove_member(request).await?;
            Ok(())
        }
        Command::Invite(command) => invite::tenant(app, command).await,
    }
}

/// All tenants for an administrator, else those that one belongs to.
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
