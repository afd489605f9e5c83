//! Runs the image's own Ignition on the tenant's config, while the new system is installed.
//!
//! This is the only step that runs programs of the image, and they act on a tenant's config:
//! Ignition writes files and calls `useradd` and `systemctl`. They run as root, in namespaces of
//! their own ([`inside`]): the new system is the only file system, the only devices are null, zero,
//! full and random, the only processes are their own, and there is no network. hammer's key and
//! session are in the memory of a process outside their PID namespace, and the identity of the
//! installed system is generated after this step. The config goes through a pipe into a tmpfs that
//! ends with the last process: neither the config nor Ignition's copy of it reaches a disk.
//!
//! Root can leave namespaces by a bug of the kernel. The makers of images are trusted not to: the
//! same code runs as root when the machine boots.

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

/// Longest time of Ignition. It fetches nothing; the time is for slow emulated machines.
const LIMIT: Duration = Duration::from_secs(300);
/// Bytes read of each output stream. A program that writes more ends by a closed pipe.
const OUTPUT_LEN_MAX: u64 = 256 * 1024;

/// Carries out a config by the image's Ignition. Its output goes to the log, without secrets.
///
/// # Errors
/// Ignition's own message when it refuses the config or cannot carry it out.
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

/// Runs the namespaces' process. Returns `true` if Ignition succeeded, and the output.
async fn execute(program: &str, config: &[u8]) -> Result<(bool, String)> {
    let hammer = std::env::current_exe()?;
    // `--kill-child`: at a timeout unshare is killed, then process 1 of the namespaces, and the
    // kernel kills everything in them. A process that stayed would keep the target busy.
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
        // A process that ended without reading has its reason in output and status. The pipe is
        // closed here; without that the process would wait for the end of the config.
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
