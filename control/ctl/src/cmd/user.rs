//! `metalmesh user`: built-in users.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    LoginUserServiceCreateRequest, LoginUserServiceListRequest, LoginUserServiceRemoveRequest,
    LoginUserServiceSetPasswordRequest,
};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::given;
use crate::app::App;
use crate::files;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a user, who logs in with: metalmesh login.
    Create {
        login: String,
        /// Shown name.
        #[arg(long)]
        name: Option<String>,
        /// Mail address.
        #[arg(long)]
        email: Option<String>,
        #[command(flatten)]
        password: Password,
    },
    /// Set another password; the user's sessions end.
    Passwd {
        login: String,
        #[command(flatten)]
        password: Password,
    },
    /// List the users.
    #[command(visible_alias = "list")]
    Ls,
    /// Remove a user: all its tokens end, its tenant stays.
    #[command(visible_alias = "delete")]
    Rm { login: String },
}

/// Where the password comes from: a prompt, or a file.
#[derive(Debug, Args)]
pub(crate) struct Password {
    /// File with the password in its first line, `-` for stdin; a prompt asks without it.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut users = app.client.login_users();
    let user = match command {
        Command::Ls => {
            let answer = users.list(LoginUserServiceListRequest {}).await?;
            return app.output.list(&answer.into_inner().users);
        }
        Command::Create {
            login,
            name,
            email,
            password,
        } => {
            let request = LoginUserServiceCreateRequest {
                login,
                name: name.unwrap_or_default(),
                email: email.unwrap_or_default(),
                password: password.read()?,
            };
            users.create(request).await?.into_inner().user
        }
        Command::Passwd { login, password } => {
            let password = password.read()?;
            let request = LoginUserServiceSetPasswordRequest { login, password };
            users.set_password(request).await?.into_inner().user
        }
        Command::Rm { login } => {
            let request = LoginUserServiceRemoveRequest { login };
            users.remove(request).await?.into_inner().user
        }
    };
    app.output.one(&given(user)?)
}

impl Password {
    fn read(&self) -> Result<String> {
        let password = match &self.password_file {
            Some(path) => {
                let text = files::read(path)?;
                text.lines().next().unwrap_or_default().to_owned()
            }
            None => prompted()?,
        };
        ensure!(!password.is_empty(), "the password is empty");
        Ok(password)
    }
}

/// A new password from a terminal, twice, and not shown.
fn prompted() -> Result<String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!("no terminal is there to ask for the password; name a file: --password-file FILE");
    }
    let shown = tcgetattr(&stdin)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Now, &hidden)?;
    let asked = ask("password: ").and_then(|first| Ok((first, ask("again: ")?)));
    tcsetattr(&stdin, OptionalActions::Now, &shown)?;
    let (first, second) = asked?;
    ensure!(first == second, "the two passwords differ");
    Ok(first)
}

fn ask(what: &str) -> Result<String> {
    let mut stderr = std::io::stderr();
    write!(stderr, "{what}")?;
    stderr.flush()?;
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .context("no password was typed")?;
    writeln!(stderr)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}
