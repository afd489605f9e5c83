//! Commands without subcommands: whoami, methods, health, version, completion.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use proto_public::api::v2::{
    HealthServiceGetRequest, MethodServiceTokenScopedListRequest, UserServiceGetRequest,
    VersionServiceGetRequest,
};
use serde_json::json;

use super::CommandLine;
use super::given;
use crate::app::App;
use crate::global_flags::GlobalFlags;
use crate::output::{OutputFormat, print_table};
use crate::text::{enum_text, or_dash};

/// Arguments of `metalmesh completion`.
#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// Shell of the script.
    #[arg(ignore_case = true)]
    shell: Shell,
}

pub(crate) fn completion(command: &CompletionArgs) -> Result<()> {
    let mut cli = CommandLine::command();
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut cli, "metalmesh", &mut script);
    out!("{}", String::from_utf8(script)?);
    Ok(())
}

/// Prints the version of the program, and that of the server if it can be reached.
pub(crate) async fn version(global: &GlobalFlags) -> Result<()> {
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
    if matches!(global.output, OutputFormat::Table | OutputFormat::Wide) {
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
