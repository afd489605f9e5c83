//! The agent of the installed system: calls `PhoneHome` at boot, then at control's interval.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_kit::{Agent, StateDir};
use anyhow::{Context, Result};
use proto_mesh::{PhoneHomeRequest, PhoneHomeServiceClient};

/// Interval when control names none (0).
const INTERVAL_DEFAULT: Duration = Duration::from_secs(60);
/// Shortest interval; control's smaller values are raised to it.
const INTERVAL_MIN: Duration = Duration::from_secs(5);
/// Longest interval; control's larger values are cut to it.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// Pause after a failed call.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Arguments of `metalmesh-hammer phone-home`.
#[derive(Debug, clap::Args)]
pub struct PhoneHomeArgs {
    /// Directory with key and certificate, as the installer wrote them
    #[arg(long, value_name = "DIR")]
    pub state_dir: PathBuf,
    /// Control node, host:port; default: the nodes known at the installation
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub control: Vec<String>,
}

/// Calls control for as long as the system runs. The [`Agent`] renews the certificate meanwhile.
///
/// # Errors
/// When the directory holds no identity. An unreachable control is no error: calls are retried.
pub async fn run(args: &PhoneHomeArgs) -> Result<()> {
    agents_kit::install_crypto_provider();
    let dir = StateDir::open(&args.state_dir)?;
    let agent =
        Agent::resume(dir, args.control.clone()).context("no identity to phone home with")?;
    let client: PhoneHomeServiceClient = agent.client();
    tracing::info!(identity = %agent.identity().spiffe, "phoning home");
    loop {
        let pause = match client.phone_home(request()).await {
            Ok(answer) => interval(answer.interval_s),
            Err(error) => {
                tracing::warn!(%error, "phone home failed; retrying");
                RETRY_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// The interval that control asks for, within the bounds; 0 means the default.
fn interval(seconds: u32) -> Duration {
    match seconds {
        0 => INTERVAL_DEFAULT,
        s => Duration::from_secs(s.into()).clamp(INTERVAL_MIN, INTERVAL_MAX),
    }
}

fn request() -> PhoneHomeRequest {
    let read = |path: &str| {
        std::fs::read_to_string(Path::new(path))
            .unwrap_or_default()
            .trim()
            .to_string()
    };
    PhoneHomeRequest {
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        uptime_s: uptime_s(&read("/proc/uptime")),
        kernel: read("/proc/sys/kernel/osrelease"),
    }
}

/// Whole seconds of `/proc/uptime` ("350735.47 234388.90").
fn uptime_s(text: &str) -> u64 {
    let whole = text.split('.').next().unwrap_or_default();
    match whole.parse() {
        Ok(seconds) => seconds,
        // The field informs operators only; a call without it is better than no call, since the
        // call is what tells control that the machine runs.
        Err(error) => {
            tracing::warn!(text, %error, "uptime not understood; reporting 0");
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptimes() {
        for (text, want) in [("350735.47 234388.90", 350_735), ("7.00 1.0", 7), ("", 0)] {
            assert_eq!(uptime_s(text), want, "{text}");
        }
    }

    #[test]
    fn intervals_stay_within_bounds() {
        for (asked, want) in [(0, 60), (1, 5), (60, 60), (1_000_000, 3600)] {
            assert_eq!(interval(asked), Duration::from_secs(want));
        }
        assert!(!request().kernel.is_empty());
    }
}
