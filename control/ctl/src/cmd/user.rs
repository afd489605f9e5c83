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
pub(crate) enum UserCommand {
    /// Create a user, who can then log in with metalmesh login.
    Create {
        /// Login of the user.
        login: String,
        /// Display name.
        #[arg(long)]
        name: Option<String>,
        /// Email address.
        #[arg(long)]
        email: Option<String>,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Change a password; the user's sessions end.
    ///
    /// Without LOGIN the command changes your own password, which needs the old one.
    Passwd {
        /// Login of another user, as an administrator.
        login: Option<String>,
        #[command(flatten)]
        password: PasswordArgs,
        /// File with your old password in its first line; without it a prompt asks for it.
        #[arg(long, value_name = "FILE", conflicts_with = "login")]
        old_password_file: Option<PathBuf>,
    },
    /// List the users.
    #[command(visible_alias = "list")]
    Ls,
    /// Delete a user: all of its tokens are revoked, its tenant stays.
    #[command(visible_alias = "delete")]
    Rm {
        /// Login of the user.
        login: String,
    },
}

/// The source of a password: a prompt, or a file.
#[derive(Debug, Args)]
pub(crate) struct PasswordArgs {
    /// File with the password in its first line; `-` is stdin. Without it a prompt asks for it.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, command: UserCommand) -> Result<()> {
    let mut users = app.client.login_users();
    let user = match command {
        UserCommand::Ls => {
            let answer = users.list(LoginUserServiceListRequest {}).await?;
            return app.output.list(&answer.into_inner().users);
        }
        UserCommand::Create {
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
        UserCommand::Passwd {
            login: Some(login),
            password,
            ..
        } => {
            let password = password.read()?;
            let request = LoginUserServiceSetPasswordRequest { login, password };
            users.set_password(request).await?.into_inner().user
        }
        UserCommand::Passwd {
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
        UserCommand::Rm { login } => {
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

/// Reads the current password.
fn old(file: Option<&Path>) -> Result<String> {
    match file {
        Some(path) => first_line(path),
        None => unseen(|| ask("old password: ")),
    }
}

impl PasswordArgs {
    fn read(&self) -> Result<String> {
        let password = match &self.password_file {
            Some(path) => first_line(path)?,
            None => prompted()?,
        };
        ensure!(!password.is_empty(), "the password is empty");
        Ok(password)
    }
}

/// Asks for a new password twice.
fn prompted() -> Result<String> {
    let (first, second) = unseen(|| Ok((ask("new password: ")?, ask("again: ")?)))?;
    ensure!(first == second, "the passwords differ");
    Ok(first)
}

/// Runs `asked` with the echo of the terminal turned off.
fn unseen<T>(asked: impl FnOnce() -> Result<T>) -> Result<T> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!("stdin is not a terminal; give the password in a file: --password-file FILE");
    }
    let shown = tcgetattr(&stdin)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Now, &hidden)?;
    // The echo must come back before an error is returned.
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
        .context("the password cannot be read")?;
    writeln!(stderr)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}
