//! Runs the image's own Ignition on the tenant's config, while the new system is installed.
//!
//! This is the one step that runs programs of the image, and does so on a tenant's words: Ignition
//! writes files and calls `useradd` and `systemctl`. They run as root, so they get a world of their
//! own ([`inside`]): the new system is their only file system, of the devices there are null, zero
//! and random, of the processes only theirs, and no network. Hammer's key and session are in the
//! memory of a process that cannot be named from there, and the identity of the installed system is
//! made after this step. The config goes through a pipe into a file system in memory, which ends
//! with the last process: neither it nor Ignition's copy of it comes to the disk.
//!
//! Root can leave such a world by the kernel's weaknesses, and whoever makes images is trusted not
//! to: the same code runs as root when the machine boots.

mod inside;
mod output;

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::boot::TARGET;
use crate::cmd::PATH;
pub use inside::{RunIgnitionArgs, run as run_inside};

/// Longest that Ignition takes. It has nothing to wait for; emulated machines need a while.
const LIMIT: Duration = Duration::from_secs(300);
/// Most that is read of its output, bytes of each stream; a program that says more is ended.
const OUTPUT_LEN_MAX: u64 = 256 * 1024;

/// Carries out a config with the image's program; its output goes to the log.
///
/// # Errors
/// Ignition's own words when it refuses the config or cannot carry it out.
pub(super) async fn run(program: &str, config: &[u8]) -> Result<()> {
    let said = tokio::time::timeout(LIMIT, execute(program, config)).await;
    let Ok(said) = said else {
        bail!("Ignition did not end within {} s", LIMIT.as_secs());
    };
    let (success, text) = said.context("cannot run Ignition")?;
    let text = output::masked(&text, config);
    for line in output::shown(&text) {
        tracing::info!("ignition: {line}");
    }
    if !success {
        bail!("{}", output::failure(&text));
    }
    Ok(())
}

/// `true` if it succeeded, and its output.
async fn execute(program: &str, config: &[u8]) -> Result<(bool, String)> {
    let hammer = std::env::current_exe()?;
    // When unshare is killed, so is process 1 of the namespaces, and with it everything in them.
    let mut child = Command::new("unshare")
        .args([
            "--mount",
            "--net",
            "--ipc",
            "--uts",
            "--pid",
            "--fork",
            "--kill-child",
            "--",
        ])
        .arg(hammer)
        .args(["run-ignition", "--root", TARGET, "--program", program])
        .env("PATH", PATH)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    if let Some(mut pipe) = child.stdin.take() {
        // A process that ended without reading tells why by its output and status.
        drop(pipe.write_all(config).await);
    }
    let (out, err) = tokio::join!(bounded(stdout), bounded(stderr));
    let status = child.wait().await?;
    Ok((status.success(), out? + &err?))
}

async fn bounded(stream: Option<impl AsyncRead + Unpin>) -> Result<String> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(OUTPUT_LEN_MAX).read_to_end(&mut bytes).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
