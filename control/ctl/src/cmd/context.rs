//! `metalmesh context`: servers and who one is there. Nothing here talks to a server.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Subcommand};
use control_client::{Context, Contexts, Secret, Settings};

use crate::args::Global;
use crate::files;
use crate::output::{Format, print_table};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a server, or change a known one.
    Add(Add),
    /// List contexts.
    #[command(visible_alias = "list")]
    Ls,
    /// Switch to a context; `-` is the previous one.
    #[command(visible_alias = "switch")]
    Use { name: String },
    /// Show the context in use, without its token.
    #[command(visible_alias = "show-current")]
    Show { name: Option<String> },
    /// Remove a context.
    #[command(visible_alias = "remove")]
    Rm { name: String },
    /// Set the project of commands that name none.
    SetProject { project: String },
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    name: String,
    /// File with the token, `-` for stdin; its content is stored in the context file.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Store the path of the token file instead of its content.
    #[arg(long, requires = "token_file")]
    link: bool,
    /// PEM of the authority that signed the server's certificate.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Project of commands that name none.
    #[arg(long, value_name = "PROJECT")]
    default_project: Option<String>,
    /// Switch to it.
    #[arg(long)]
    activate: bool,
}

pub(crate) fn run(global: &Global, command: Command) -> Result<()> {
    let path = Contexts::path(global.config.as_deref())?;
    let mut contexts = Contexts::load(&path)?;
    match command {
        Command::Ls => return list(&global.output, &contexts),
        Command::Show { name } => {
            let context = match name.as_deref().or(global.context.as_deref()) {
                Some(name) => contexts.get(name)?,
                None => contexts
                    .current()
                    .context("no context is in use; see: metalmesh context ls")?,
            };
            return show(&global.output, context);
        }
        Command::Add(add) => {
            let name = add.name.clone();
            let activate = add.activate || contexts.contexts.is_empty();
            let context = made(&contexts, global.api_url.clone(), add)?;
            contexts.put(context);
            if activate {
                contexts.switch(&name)?;
            }
        }
        Command::Use { name } => contexts.switch(&name)?,
        Command::Rm { name } => contexts.remove(&name)?,
        Command::SetProject { project } => {
            let name = global
                .context
                .clone()
                .or_else(|| contexts.current_context.clone());
            let name = name.context("no context is in use; see: metalmesh context ls")?;
            let mut context = contexts.get(&name)?.clone();
            context.default_project = Some(project);
            contexts.put(context);
        }
    }
    contexts.save(&path)?;
    Ok(())
}

fn made(contexts: &Contexts, api_url: Option<String>, add: Add) -> Result<Context> {
    let known = contexts.get(&add.name).ok();
    let api_url = api_url
        .or_else(|| known.map(|known| known.api_url.clone()))
        .context("name the server: --api-url http://HOST:PORT")?;
    // A bad address is told now, not at the first call.
    let scheme = api_url.starts_with("http://") || api_url.starts_with("https://");
    ensure!(
        scheme,
        "{api_url:?} is not a URL like http://127.0.0.1:4443 or https://mesh.example"
    );
    let (api_token, token_file) = match (&add.token_file, add.link) {
        (Some(path), true) => (None, Some(std::path::absolute(path)?)),
        (Some(path), false) => (Some(Secret::new(files::read_token(path)?)), None),
        (None, _) => known.map_or((None, None), |known| {
            (known.api_token.clone(), known.token_file.clone())
        }),
    };
    Ok(Context {
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

/// Adds a context with a token that is at hand, and does not switch to it.
pub(crate) fn add_with_token(
    global: &Global,
    settings: &Settings,
    name: &str,
    token: &str,
    project: Option<String>,
) -> Result<()> {
    let path = Contexts::path(global.config.as_deref())?;
    let mut contexts = Contexts::load(&path)?;
    contexts.put(Context {
        name: name.to_owned(),
        api_url: settings.api_url.clone(),
        api_token: Some(Secret::new(token)),
        token_file: None,
        ca_file: settings.ca_file.clone(),
        default_project: project,
    });
    contexts.save(&path)?;
    Ok(())
}

fn list(output: &Format, contexts: &Contexts) -> Result<()> {
    if !matches!(output, Format::Table | Format::Wide) {
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

fn show(output: &Format, context: &Context) -> Result<()> {
    if !matches!(output, Format::Table | Format::Wide) {
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
fn public(context: &Context) -> serde_json::Value {
    serde_json::json!({
        "name": context.name,
        "apiUrl": context.api_url,
        "defaultProject": context.default_project,
        "hasToken": context.api_token.is_some() || context.token_file.is_some(),
    })
}
