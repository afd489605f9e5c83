//! Runs nft, the program of nftables.

use std::process::Stdio;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// The program (Debian package nftables).
const PROGRAM: &str = "nft";
/// Time that one run may take. It takes some milliseconds.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Bytes that one run may print: 64 firewalls of 1,024 networks are about 2 MiB.
const OUTPUT_MAX: u64 = 16 << 20;

/// `true` if the host has the program.
pub(in crate::linux) fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(PROGRAM).is_file())
}

/// A failure of nft.
#[derive(Debug, Error)]
pub enum NftError {
    /// The program cannot be run.
    #[error("cannot run nft (Debian package nftables)")]
    Run(#[source] std::io::Error),
    /// The program refused its commands.
    #[error("nft: {0}")]
    Refused(String),
    /// The program did not end within a time limit.
    #[error("nft gave no answer within {0:?}")]
    Timeout(Duration),
    /// The program printed something else than a list of rules.
    #[error("nft printed no list of rules")]
    Output(#[source] serde_json::Error),
}

impl NftError {
    /// `true` if there is no table, or nothing that could have one: the program or the kernel's part
    /// is missing.
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Run(error) => error.kind() == std::io::ErrorKind::NotFound,
            // As the C library says ENOENT, EPROTONOSUPPORT and EOPNOTSUPP.
            Self::Refused(reason) => {
                let absent = ["No such file or directory", "not supported"];
                absent.iter().any(|text| reason.contains(text))
            }
            _ => false,
        }
    }
}

/// Carries out commands as one transaction: all of them or none.
///
/// # Errors
/// When nft cannot be run or refuses one.
pub(super) async fn load(commands: &str) -> Result<(), NftError> {
    run(&["-f", "-"], commands).await.map(drop)
}

/// Lists all tables as JSON, without what changes by itself. nft 1.0.6 reads no elements of sets for
/// it, of which packets add many; it prints no JSON if a table of anybody has flags.
///
/// # Errors
/// When nft cannot be run or fails.
pub(super) async fn list_all() -> Result<Vec<u8>, NftError> {
    run(&["-j", "-s", "-t", "list", "ruleset"], "").await
}

/// Lists a table in the same form. nft 1.0.6 reads all elements of its sets for it, though it prints
/// none: 100,000 take two seconds.
///
/// # Errors
/// When nft cannot be run, or the table does not exist.
pub(super) async fn list(family: &str, table: &str) -> Result<Vec<u8>, NftError> {
    run(&["-j", "-s", "-t", "list", "table", family, table], "").await
}

async fn run(arguments: &[&str], input: &str) -> Result<Vec<u8>, NftError> {
    let run = tokio::time::timeout(TIMEOUT, process(arguments, input));
    run.await.map_err(|_| NftError::Timeout(TIMEOUT))?
}

async fn process(arguments: &[&str], input: &str) -> Result<Vec<u8>, NftError> {
    let mut child = Command::new(PROGRAM)
        // Reasons in English.
        .env("LC_ALL", "C")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(NftError::Run)?;
    let stdin = child.stdin.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program that ends early says why on its other side.
            stdin.write_all(input.as_bytes()).await.ok();
        }
        Ok(())
    };
    // Together: a full pipe would stop the others.
    let (out, err, ()) =
        tokio::try_join!(read(child.stdout.take()), read(child.stderr.take()), write)?;
    let status = child.wait().await.map_err(NftError::Run)?;
    if status.success() {
        return Ok(out);
    }
    let told = String::from_utf8_lossy(&err);
    let first = told.lines().next().unwrap_or("no reason given");
    Err(NftError::Refused(first.to_owned()))
}

async fn read(pipe: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, NftError> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let read = pipe.take(OUTPUT_MAX).read_to_end(&mut bytes).await;
        read.map_err(NftError::Run)?;
    }
    Ok(bytes)
}
