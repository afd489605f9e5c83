//! The installed system's side: "Phoned Home" at boot and then as often as control likes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_kit::{Agent, StateDir};
use anyhow::{Context, Result};
use proto_mesh::{PhoneHomeRequest, PhoneHomeServiceClient};

const INTERVAL_DEFAULT: Duration = Duration::from_secs(60);
const INTERVAL_MIN: Duration = Duration::from_secs(5);
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
const RETRY_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct PhoneHomeArgs {
    /// Directory with key and certificate, as hammer left them
    #[arg(long, value_name = "DIR")]
    pub state_dir: PathBuf,
    /// A control node, host:port; else those of the installation
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub control: Vec<String>,
}

/// Calls for as long as the system runs; the certificate is renewed beside.
///
/// # Errors
/// When there is no identity. That control is away is no error.
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
                tracing::warn!(%error, "control not reached");
                RETRY_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// What control asks for, within reason.
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
    let uptime = read("/proc/uptime");
    let whole = uptime.split('.').next().unwrap_or_default();
    PhoneHomeRequest {
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        uptime_s: whole.parse().unwrap_or_default(),
        kernel: read("/proc/sys/kernel/osrelease"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_stay_within_reason() {
        for (asked, want) in [(0, 60), (1, 5), (60, 60), (1_000_000, 3600)] {
            assert_eq!(interval(asked), Duration::from_secs(want));
        }
        assert!(!request().kernel.is_empty());
    }
}
