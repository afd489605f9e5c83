//! `metalmesh context`: the servers and tokens of the context file. No command here calls a server.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Subcommand};
use control_client::{ClientSettings, SecretText, ServerContext, ServerContexts};

use crate::files;
use crate::global_flags::GlobalFlags;
use crate::output::{OutputFormat, print_table};

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// Add a context, or change an existing one; --api-url names its server.
    Add(ContextAddArgs),
    /// List contexts.
    #[command(visible_alias = "list")]
    Ls,
    /// Switch to a context; `-` is the previous one.
    #[command(visible_alias = "switch")]
    Use {
        /// Name of the context.
        name: String,
    },
    /// Show a context, without its token; by default the current one.
    #[command(visible_alias = "show-current")]
    Show {
        /// Name of the context.
        name: Option<String>,
    },
    /// Remove a context; its token stays valid.
    #[command(visible_alias = "remove")]
    Rm {
        /// Name of the context.
        name: String,
    },
    /// Set the default project of the current context.
    SetProject {
        /// Default project, by id or name.
        project: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ContextAddArgs {
    /// Name of the context.
    name: String,
    /// File with the token; `-` is stdin. The token is copied into the context file.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Store the path of the token file instead of the token.
    #[arg(long, requires = "token_file")]
    link: bool,
    /// File with the authority that signed the server's certificate, PEM.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Project of commands without --project.
    #[arg(long, value_name = "PROJECT")]
    default_project: Option<String>,
    /// Switch to the new context.
    #[arg(long)]
    activate: bool,
}

pub(crate) fn run(global: &GlobalFlags, command: ContextCommand) -> Result<()> {
    let path = ServerContexts::path(global.config.as_deref())?;
    let mut contexts = ServerContexts::load(&path)?;
    match command {
        ContextCommand::Ls => return list(&global.output, &contexts),
        ContextCommand::Show { name } => {
            let context = match name.as_deref().or(global.context.as_deref()) {
                Some(name) => contexts.get(name)?,
                None => contexts
                    .current()
                    .context("no context is selected; see: metalmesh context ls")?,
            };
            return show(&global.output, context);
        }
        ContextCommand::Add(add) => {
            let name = add.name.clone();
            let activate = add.activate || contexts.contexts.is_empty();
            let context = made(&contexts, global.api_url.clone(), add)?;
            contexts.put(context);
            if activate {
                contexts.switch(&name)?;
            }
        }
        ContextCommand::Use { name } => contexts.switch(&name)?,
        ContextCommand::Rm { name } => contexts.remove(&name)?,
        ContextCommand::SetProject { project } => {
            let name = global
                .context
                .clone()
                .or_else(|| contexts.current_context.clone());
            let name = name.context("no context is selected; see: metalmesh context ls")?;
            let mut context = contexts.get(&name)?.clone();
            context.default_project = Some(project);
            contexts.put(context);
        }
    }
    contexts.save(&path)?;
    Ok(())
}

fn made(
    contexts: &ServerContexts,
    api_url: Option<String>,
    add: ContextAddArgs,
) -> Result<ServerContext> {
    let known = contexts.get(&add.name).ok();
    let api_url = api_url
        .or_else(|| known.map(|known| known.api_url.clone()))
        .context("name the server: --api-url http://HOST:PORT")?;
    // A bad URL is refused now, rather than at the first call.
    let scheme = api_url.starts_with("http://") || api_url.starts_with("https://");
    ensure!(
        scheme,
        "{api_url:?} is not a URL like http://127.0.0.1:4443 or https://mesh.example"
    );
    let (api_token, token_file) = match (&add.token_file, add.link) {
        (Some(path), true) => (None, Some(std::path::absolute(path)?)),
        (Some(path), false) => (Some(SecretText::new(files::read_token(path)?)), None),
        (None, _) => known.map_or((None, None), |known| {
            (known.api_token.clone(), known.token_file.clone())
        }),
    };
    Ok(ServerContext {
        name: add.name,
        api_url,
        api_token,
        token_file,
        ca_file: add
            .ca_file
            .or_else(|| known.and_then(|known| known.ca_file.clone())),
        default_project: add
            .default_project
            .or_else(|| known.and_then(|known| known.default_project.clone())),
    })
}

/// Adds a context with a new token, without switching to it.
pub(crate) fn add_with_token(
    global: &GlobalFlags,
    settings: &ClientSettings,
    name: &str,
    token: &str,
    project: Option<String>,
) -> Result<()> {
    let path = ServerContexts::path(global.config.as_deref())?;
    let mut contexts = ServerContexts::load(&path)?;
    contexts.put(ServerContext {
        name: name.to_owned(),
        api_url: settings.api_url.clone(),
        api_token: Some(SecretText::new(token)),
        token_file: None,
        ca_file: settings.ca_file.clone(),
        default_project: project,
    });
    contexts.save(&path)?;
    Ok(())
}

fn list(output: &OutputFormat, contexts: &ServerContexts) -> Result<()> {
    if !matches!(output, OutputFormat::Table | OutputFormat::Wide) {
        let all = contexts.contexts.iter().map(public).collect();
        return output.value(&serde_json::Value::Array(all));
    }
    let current = contexts.current_context.as_deref();
    let rows = contexts.contexts.iter().map(|context| {
        let mark = if current == Some(&context.name) {
            "*"
        } else {
            ""
        };
        let project = context
            .default_project
            .clone()
            .unwrap_or_else(|| "-".into());
        vec![
            mark.into(),
            context.name.clone(),
            context.api_url.clone(),
            project,
        ]
    });
    print_table(&["", "name", "server", "project"], rows);
    Ok(())
}

fn show(output: &OutputFormat, context: &ServerContext) -> Result<()> {
    if !matches!(output, OutputFormat::Table | OutputFormat::Wide) {
        return output.value(&public(context));
    }
    outln!("name:     {}", context.name);
    outln!("server:   {}", context.api_url);
    outln!(
        "project:  {}",
        context.default_project.as_deref().unwrap_or("-")
    );
    let token = match (&context.token_file, &context.api_token) {
        (Some(path), _) => format!("in {}", path.display()),
        (None, Some(_)) => "stored".to_owned(),
        (None, None) => "none".to_owned(),
    };
    outln!("token:    {token}");
    Ok(())
}

/// A context without its token.
fn public(context: &ServerContext) -> serde_json::Value {
    serde_json::json!({
        "name": context.name,
        "apiUrl": context.api_url,
        "defaultProject": context.default_project,
        "hasToken": context.api_token.is_some() || context.token_file.is_some(),
    })
}
