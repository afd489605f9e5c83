//! Commands of one verb: apply, whoami, methods, health, version, completion.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    HealthServiceGetRequest, MethodServiceTokenScopedListRequest, UserServiceGetRequest,
    VersionServiceGetRequest,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::given;
use crate::app::App;
use crate::args::{Cli, Global};
use crate::files;
use crate::output::{Format, from_json, print_table};
use crate::text::{enum_text, or_dash};

/// Create resources from a file.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// YAML documents or JSON, `-` for stdin; each has a `kind` beside its fields.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
}

/// A completion script.
#[derive(Debug, Args)]
pub(crate) struct Completion {
    shell: Shell,
}

pub(crate) fn completion(command: &Completion) -> Result<()> {
    let mut cli = Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut cli, "metalmesh", &mut script);
    out!("{}", String::from_utf8(script)?);
    Ok(())
}

/// The program's version always, the server's when it can be had.
pub(crate) async fn version(global: &Global) -> Result<()> {
    let own = env!("CARGO_PKG_VERSION");
    let server = match App::new(global) {
        Ok(app) => app
            .client
            .version()
            .get(VersionServiceGetRequest {})
            .await
            .ok(),
        Err(_) => None,
    };
    let server = server
        .and_then(|answer| answer.into_inner().version)
        .map(|v| v.version);
    if matches!(global.output, Format::Table | Format::Wide) {
        outln!("client  {own}");
        outln!("server  {}", or_dash(server.unwrap_or_default()));
        return Ok(());
    }
    global
        .output
        .value(&json!({ "client": own, "server": server }))
}

pub(crate) async fn health(app: &App) -> Result<()> {
    let answer = app
        .client
        .health()
        .get(HealthServiceGetRequest {})
        .await?
        .into_inner();
    let health = given(answer.health)?;
    app.output
        .message("metalstack.api.v2.Health", &health, |health| {
            let rows = health.services.iter().map(|service| {
                vec![
                    enum_text("metalstack.api.v2.Service", service.name),
                    enum_text("metalstack.api.v2.ServiceStatus", service.status),
                    service.message.clone(),
                ]
            });
            print_table(&["service", "status", "message"], rows);
        })
}

pub(crate) async fn whoami(app: &App) -> Result<()> {
    let answer = app
        .client
        .users()
        .get(UserServiceGetRequest {})
        .await?
        .into_inner();
    let user = given(answer.user)?;
    app.output.message("metalstack.api.v2.User", &user, |user| {
        outln!("login:     {}", user.login);
        let tenants: Vec<&str> = user.tenants.iter().map(|t| t.login.as_str()).collect();
        outln!("tenants:   {}", or_dash(tenants.join(", ")));
        let projects: Vec<String> = user
            .projects
            .iter()
            .map(|p| format!("{} ({})", p.name, p.uuid))
            .collect();
        outln!("projects:  {}", or_dash(projects.join(", ")));
    })
}

pub(crate) async fn methods(app: &App) -> Result<()> {
    let request = MethodServiceTokenScopedListRequest {};
    let answer = app
        .client
        .methods()
        .token_scoped_list(request)
        .await?
        .into_inner();
    let name = "metalstack.api.v2.MethodServiceTokenScopedListResponse";
    app.output.message(name, &answer, |answer| {
        let rows = answer.permissions.iter().flat_map(|permission| {
            permission
                .methods
                .iter()
                .map(|m| vec![or_dash(permission.subject.clone()), m.clone()])
        });
        print_table(&["subject", "method"], rows);
    })
}

/// Creates what is not there; what is there stays as it is and is named.
pub(crate) async fn apply(app: &App, apply: &Apply) -> Result<()> {
    let text = files::read(&apply.file)?;
    for (at, document) in serde_norway::Deserializer::from_str(&text).enumerate() {
        let named = || format!("document {} of {}", at + 1, apply.file.display());
        let value = <Value as serde::Deserialize>::deserialize(document).with_context(named)?;
        if value.is_null() {
            continue;
        }
        let kind = value.get("kind").and_then(Value::as_str).map(str::to_owned);
        let kind = kind.with_context(|| format!("{}: no kind", named()))?;
        let id = value
            .get("id")
            .or_else(|| value.get("name"))
            .and_then(Value::as_str);
        let id = id.unwrap_or("?").to_owned();
        let done = match create(app, &kind, &value)
            .await
            .map_err(|error| match error {
                Failure::Status(status) => Ok(status),
                Failure::Other(error) => Err(error),
            }) {
            Ok(()) => "created",
            Err(Ok(status)) if status.code() == Code::AlreadyExists => "exists",
            Err(Ok(status)) => {
                return Err(anyhow::Error::new(status).context(format!("{}: {kind} {id}", named())));
            }
            Err(Err(error)) => return Err(error.context(named())),
        };
        outln!("{kind} {id} {done}");
    }
    Ok(())
}

enum Failure {
    Status(Status),
    Other(anyhow::Error),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

async fn create(app: &App, kind: &str, value: &Value) -> Result<(), Failure> {
    let client = &app.client;
    match kind {
        "Tenant" => {
            let request: admin::TenantServiceCreateRequest =
                from_json("metalstack.admin.v2.TenantServiceCreateRequest", value)?;
            client.admin_tenants().create(request).await?;
        }
        "Partition" => {
            let partition = Some(from_json("metalstack.api.v2.Partition", value)?);
            let request = admin::PartitionServiceCreateRequest { partition };
            client.admin_partitions().create(request).await?;
        }
        "Size" => {
            let size = Some(from_json("metalstack.api.v2.Size", value)?);
            client
                .admin_sizes()
                .create(admin::SizeServiceCreateRequest { size })
                .await?;
        }
        "Image" => {
            let image = Some(from_json("metalstack.api.v2.Image", value)?);
            client
                .admin_images()
                .create(admin::ImageServiceCreateRequest { image })
                .await?;
        }
        "FilesystemLayout" => {
            let filesystem_layout = Some(from_json("metalstack.api.v2.FilesystemLayout", value)?);
            let request = admin::FilesystemServiceCreateRequest { filesystem_layout };
            client.admin_filesystems().create(request).await?;
        }
        "Network" => {
            let request: admin::NetworkServiceCreateRequest =
                from_json("metalstack.admin.v2.NetworkServiceCreateRequest", value)?;
            client.admin_networks().create(request).await?;
        }
        _ => {
            let known = "Tenant, Partition, Size, Image, FilesystemLayout, Network";
            return Err(
                anyhow::anyhow!("kind {kind:?} cannot be applied; known are {known}").into(),
            );
        }
    }
    Ok(())
}
