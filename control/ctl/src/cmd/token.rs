//! `metalmesh token`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    AdminPermissions, AdminRole, InfraRole, PermissionsByVisibility, ProjectPermissions,
    PublicPermissions, SelfPermissions, TenantPermissions, Token, TokenQuery,
    TokenServiceCreateRequest, TokenServiceGetRequest, TokenServiceListRequest,
    TokenServiceRefreshRequest, TokenServiceRevokeRequest, TokenServiceUpdateRequest,
    permissions_by_visibility::Visibility,
};
use proto_public::metalmesh::admin::v1::{TokenUseServiceAllRequest, TokenUseServiceOwnRequest};
use proto_public::{Scope, method, methods};

use super::{context, given, label_patch, server_lock};
use crate::app::App;
use crate::files;
use crate::global_flags::GlobalFlags;
use crate::text::{enum_value, labels, pairs, parse_duration};

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token; its secret is shown once.
    Create(Box<TokenCreateArgs>),
    /// List tokens.
    #[command(visible_alias = "list")]
    Ls {
        /// Only tokens of this user, as an administrator.
        #[arg(long)]
        user: Option<String>,
    },
    /// Show a token, without its secret.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the token.
        id: String,
    },
    /// List when your tokens were last used, with a resolution of five minutes; with --all all tokens,
    /// as an administrator.
    Uses,
    /// Revoke a token.
    #[command(visible_aliases = ["rm", "delete"])]
    Revoke {
        /// Id of the token.
        id: String,
        /// User of the token, as an administrator.
        #[arg(long)]
        user: Option<String>,
    },
    /// Create a new token with the rights of the current one.
    Refresh {
        /// Write the secret to this new file (mode 0600) instead of stdout.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Change a token's description or labels, or remove roles from it.
    Update {
        /// Id of the token.
        id: String,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
        /// Remove the token's admin role.
        #[arg(long)]
        no_admin_role: bool,
        /// Remove the token's infra role.
        #[arg(long)]
        no_infra_role: bool,
        /// Set (`a=b`) or remove (`a-`) a label. Repeatable.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreateArgs {
    /// Description, free text.
    #[arg(long, default_value = "")]
    description: String,
    /// Create the token for this user, as an administrator.
    #[arg(long)]
    user: Option<String>,
    /// Lifetime of the token, 10m to 365d.
    #[arg(long, default_value = "8h", value_parser = parse_duration)]
    expires: Duration,
    /// Role in a project, or in all projects with `*`: owner, editor or viewer. Repeatable.
    #[arg(long = "project-role", value_name = "PROJECT=ROLE")]
    project_roles: Vec<String>,
    /// Role in a tenant: owner, editor, viewer or guest. Repeatable.
    #[arg(long = "tenant-role", value_name = "TENANT=ROLE")]
    tenant_roles: Vec<String>,
    /// Role for a machine: editor or viewer. Repeatable.
    #[arg(long = "machine-role", value_name = "UUID=ROLE")]
    machine_roles: Vec<String>,
    /// Admin role: editor or viewer.
    #[arg(long)]
    admin_role: Option<String>,
    /// Infra role: editor or viewer.
    #[arg(long)]
    infra_role: Option<String>,
    /// Grant only the listed roles and methods. Without it the token may also call the methods that
    /// every user may call, such as listing images and showing itself.
    #[arg(long)]
    bare: bool,
    /// Single method, with its subject if it has one: [SUBJECT=]/package.Service/Method. Repeatable.
    #[arg(long = "permission", value_name = "PERMISSION")]
    permissions: Vec<String>,
    /// Set a label. Repeatable.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Write the secret to this new file (mode 0600) instead of stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Store the token as a context of this name instead of showing it.
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    add_context: Option<String>,
}

pub(crate) async fn run(app: &App, global: &GlobalFlags, command: TokenCommand) -> Result<()> {
    match command {
        TokenCommand::Create(create) => make(app, global, *create).await,
        TokenCommand::Ls { user } => list(app, user).await,
        TokenCommand::Uses => uses(app).await,
        TokenCommand::Show { id } => {
            let answer = app
                .client
                .tokens()
                .get(TokenServiceGetRequest { uuid: id })
                .await?;
            app.output.one(&given(answer.into_inner().token)?)
        }
        TokenCommand::Revoke { id, user: None } => {
            app.client
                .tokens()
                .revoke(TokenServiceRevokeRequest { uuid: id })
                .await?;
            Ok(())
        }
        TokenCommand::Revoke {
            id,
            user: Some(user),
        } => {
            let request = admin::TokenServiceRevokeRequest { uuid: id, user };
            app.client.admin_tokens().revoke(request).await?;
            Ok(())
        }
        TokenCommand::Refresh { out } => {
            let answer = app
                .client
                .tokens()
                .refresh(TokenServiceRefreshRequest {})
                .await?;
            let answer = answer.into_inner();
            hand_over(app, &given(answer.token)?, &answer.secret, out)
        }
        TokenCommand::Update {
            id,
            description,
            no_admin_role,
            no_infra_role,
            labels,
        } => {
            let request = TokenServiceUpdateRequest {
                uuid: id,
                update_meta: server_lock(),
                description,
                labels: label_patch(&labels)?,
                admin_role: no_admin_role.then_some(AdminRole::Unspecified.into()),
                infra_role: no_infra_role.then_some(InfraRole::Unspecified.into()),
                ..Default::default()
            };
            let answer = app.client.tokens().update(request).await?.into_inner();
            app.output.one(&given(answer.token)?)
        }
    }
}

async fn uses(app: &App) -> Result<()> {
    let mut uses = app.client.token_uses();
    let found = if app.everything() {
        let answer = uses.all(TokenUseServiceAllRequest {}).await?;
        answer.into_inner().uses
    } else {
        let answer = uses.own(TokenUseServiceOwnRequest {}).await?;
        answer.into_inner().uses
    };
    app.output.list(&found)
}

async fn list(app: &App, user: Option<String>) -> Result<()> {
    let query = TokenQuery {
        user: user.clone(),
        ..Default::default()
    };
    let tokens = if app.everything() || user.is_some() {
        let request = admin::TokenServiceListRequest { query: Some(query) };
        app.client
            .admin_tokens()
            .list(request)
            .await?
            .into_inner()
            .tokens
    } else {
        let request = TokenServiceListRequest { query: Some(query) };
        app.client.tokens().list(request).await?.into_inner().tokens
    };
    app.output.list(&tokens)
}

async fn make(app: &App, global: &GlobalFlags, create: TokenCreateArgs) -> Result<()> {
    let project_roles = project_roles(app, &create.project_roles).await?;
    let only = match project_roles.keys().collect::<Vec<_>>().as_slice() {
        [one] if *one != "*" => Some((*one).clone()),
        _ => None,
    };
    let request = TokenServiceCreateRequest {
        description: create.description,
        permissions: permissions(&create.permissions, create.bare)?,
        expires: Some(prost_types::Duration {
            seconds: i64::try_from(create.expires.as_secs()).context("--expires is too long")?,
            nanos: 0,
        }),
        project_roles,
        tenant_roles: roles(&create.tenant_roles, "metalstack.api.v2.TenantRole")?,
        admin_role: role(create.admin_role.as_deref(), "metalstack.api.v2.AdminRole")?,
        infra_role: role(create.infra_role.as_deref(), "metalstack.api.v2.InfraRole")?,
        machine_roles: roles(&create.machine_roles, "metalstack.api.v2.MachineRole")?,
        labels: labels(&create.labels)?,
    };
    if let Some(path) = &create.out {
        files::check_new(path)?;
    }
    let (token, secret) = if create.user.is_some() {
        let request = admin::TokenServiceCreateRequest {
            user: create.user,
            token_create_request: Some(request),
        };
        let answer = app
            .client
            .admin_tokens()
            .create(request)
            .await?
            .into_inner();
        (given(answer.token)?, answer.secret)
    } else {
        let answer = app.client.tokens().create(request).await?.into_inner();
        (given(answer.token)?, answer.secret)
    };
    match create.add_context {
        Some(name) if !app.is_dry() => {
            context::add_with_token(global, &app.settings, &name, &secret, only)?;
            app.output.one(&token)
        }
        _ => hand_over(app, &token, &secret, create.out),
    }
}

/// Shows the secret, or writes it to a file. The server does not show it again.
fn hand_over(app: &App, token: &Token, secret: &str, out: Option<PathBuf>) -> Result<()> {
    if app.is_dry() {
        return app.output.one(token);
    }
    if let Some(path) = out {
        files::write_private(&path, &format!("{secret}\n"))?;
        return app.output.one(token);
    }
    let mut value = serde_json::Map::new();
    value.insert("token".into(), crate::output::to_json(token)?);
    value.insert("secret".into(), secret.into());
    app.output.secret(secret, &value.into())
}

async fn project_roles(app: &App, flags: &[String]) -> Result<HashMap<String, i32>> {
    let mut out = HashMap::new();
    for (project, role) in roles(flags, "metalstack.api.v2.ProjectRole")? {
        let project = if project == "*" {
            project
        } else {
            app.project_id(&project).await?
        };
        out.insert(project, role);
    }
    Ok(out)
}

fn roles(flags: &[String], kind: &str) -> Result<HashMap<String, i32>> {
    pairs(flags)?
        .into_iter()
        .map(|(subject, role)| Ok((subject, enum_value(kind, &role)?)))
        .collect()
}

fn role(text: Option<&str>, kind: &str) -> Result<Option<i32>> {
    text.map(|text| enum_value(kind, text)).transpose()
}

/// The single methods of the flags, and without `bare` those that every user may call, grouped by
/// visibility as the contract requires.
fn permissions(flags: &[String], bare: bool) -> Result<Vec<PermissionsByVisibility>> {
    let listed: Result<Vec<_>> = flags.iter().map(|flag| permission(flag)).collect();
    let mut all = listed?;
    if !bare {
        let of = |scope: Scope| {
            let fitting = methods().iter().filter(move |method| method.scope == scope);
            fitting
                .map(|method| method.path.clone())
                .collect::<Vec<_>>()
        };
        for visibility in [
            Visibility::Self_(SelfPermissions {
                methods: of(Scope::Own),
            }),
            Visibility::Public(PublicPermissions {
                methods: of(Scope::Public),
            }),
        ] {
            all.push(PermissionsByVisibility {
                visibility: Some(visibility),
            });
        }
    }
    Ok(all)
}

fn permission(flag: &str) -> Result<PermissionsByVisibility> {
    let (subject, path) = flag.split_once('=').unwrap_or(("", flag));
    let known = method(path)
        .with_context(|| format!("{path:?} is not a method; see: metalmesh methods"))?;
    let methods = vec![path.to_owned()];
    let subject = || {
        if subject.is_empty() {
            "*".to_owned()
        } else {
            subject.to_owned()
        }
    };
    let visibility = match known.scope {
        Scope::Public => Visibility::Public(PublicPermissions { methods }),
        Scope::Own => Visibility::Self_(SelfPermissions { methods }),
        Scope::Tenant(_) => Visibility::Tenant(TenantPermissions {
            login: subject(),
            methods,
        }),
        Scope::Project(_) => Visibility::Project(ProjectPermissions {
            project: subject(),
            methods,
        }),
        Scope::Machine(_) => Visibility::Machine(proto_public::api::v2::MachinePermissions {
            uuid: subject(),
            methods,
        }),
        Scope::Admin(_) => Visibility::Admin(AdminPermissions { methods }),
        Scope::Infra(_) => Visibility::Infra(proto_public::api::v2::InfraPermissions { methods }),
    };
    Ok(PermissionsByVisibility {
        visibility: Some(visibility),
    })
}
