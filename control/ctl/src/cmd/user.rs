//! `metalmesh user`: built-in users.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    LoginUserServiceChangePasswordRequest, LoginUserServiceCreateRequest,
    LoginUserServiceListRequest, LoginUserServiceRemoveRequest, LoginUserServiceSetPasswordRequest,
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
    ///
    /// Your own needs the old one: without LOGIN.
    Passwd {
        /// Somebody else, as an administrator.
        login: Option<String>,
        #[command(flatten)]
        password: Password,
        /// File with your old password in its first line; a prompt asks without it.
        #[arg(long, value_name = "FILE", conflicts_with = "login")]
        old_password_file: Option<PathBuf>,
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
        Command::Passwd {
            login: Some(login),
            password,
            ..
        } => {
            let password = password.read()?;
            let request = LoginUserServiceSetPasswordRequest { login, password };
            users.set_password(request).await?.into_inner().user
        }
        Command::Passwd {
            login: None,
            password,
            old_password_file,
        } => {
            let request = LoginUserServiceChangePasswordRequest {
                old_password: old(old_password_file.as_deref())?,
                new_password: password.read()?,
            };
            let answer = users.change_password(request).await?;
            noteln!("your sessions have ended; log in again: metalmesh login");
            answer.into_inner().user
        }
        Command::Rm { login } => {
            let request = LoginUserServiceRemoveRequest { login };
            users.remove(request).await?.into_inner().user
        }
    };
    app.output.one(&given(user)?)
}

fn first_line(path: &Path) -> Result<String> {
    Ok(files::read(path)?
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned())
}

/// The password that is set.
fn old(file: Option<&Path>) -> Result<String> {
    match file {
        Some(path) => first_line(path),
        None => unseen(|| ask("old password: ")),
    }
}

impl Password {
    fn read(&self) -> Result<String> {
        let password = match &self.password_file {
            Some(path) => first_line(path)?,
            None => prompted()?,
        };
        ensure!(!password.is_empty(), "the password is empty");
        Ok(password)
    }
}

/// A new password from a terminal, twice.
fn prompted() -> Result<String> {
    let (first, second) = unseen(|| Ok((ask("new password: ")?, ask("again: ")?)))?;
    ensure!(first == second, "the two passwords differ");
    Ok(first)
}

/// What is typed into a terminal meanwhile is not shown.
fn unseen<T>(asked: impl FnOnce() -> Result<T>) -> Result<T> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!("no terminal is there to ask for the password; name a file: --password-file FILE");
    }
    let shown = tcgetattr(&stdin)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Now, &hidden)?;
    let asked = asked();
    tcsetattr(&stdin, OptionalActions::Now, &shown)?;
    asked
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
