//! Commands without subcommands: whoami, methods, health, version, completion.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use proto_public::api::v2::{
    HealthServiceGetRequest, MethodServiceTokenScopedListRequest, UserServiceGetRequest,
    VersionServiceGetRequest,
};
use proto_public::metalmesh::admin::v1::ClusterServiceStatusRequest;
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

/// Prints version, commit, feature level and build of the program, and those of the server if it can be
/// reached.
pub(crate) async fn version(global: &GlobalFlags) -> Result<()> {
    let own = base_runtime::build_info!();
    let app = App::new(global).ok();
    let server = match &app {
        Some(app) => {
            let answer = app.client.version().get(VersionServiceGetRequest {}).await;
            answer.ok().and_then(|answer| answer.into_inner().version)
        }
        None => None,
    };
    // Without an answer to the first question the second one would only wait once more.
    let level = match (&app, &server) {
        (Some(app), Some(_)) => server_level(app).await,
        _ => None,
    };
    let rows = [
        json!({
            "version": own.version(),
            "commit": own.commit(),
            "feature_level": own.feature_level(),
            "build": own.build(),
        }),
        match server {
            Some(server) => json!({
                "version": server.version,
                "commit": server.git_sha1,
                "feature_level": level,
                "build": server.build_date,
            }),
            None => serde_json::Value::Null,
        },
    ];
    if matches!(global.output, OutputFormat::Table | OutputFormat::Wide) {
        let names = ["client", "server"];
        let rows = names
            .iter()
            .zip(&rows)
            .map(|(name, row)| version_row(name, row));
        print_table(&["program", "version", "commit", "level", "build"], rows);
        return Ok(());
    }
    let [client, server] = rows;
    global
        .output
        .value(&json!({ "client": client, "server": server }))
}

/// The feature level of the cluster. `None` for callers who may not see it.
async fn server_level(app: &App) -> Option<u32> {
    let request = ClusterServiceStatusRequest::default();
    let answer = app.client.clusters().status(request).await.ok()?;
    Some(answer.into_inner().feature_level)
}

fn version_row(name: &str, row: &serde_json::Value) -> Vec<String> {
    let cell = |key: &str| match &row[key] {
        serde_json::Value::String(text) => or_dash(text.clone()),
        serde_json::Value::Number(number) => number.to_string(),
        _ => or_dash(String::new()),
    };
    let cells = ["version", "commit", "feature_level", "build"].map(cell);
    std::iter::once(name.to_owned()).chain(cells).collect()
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
