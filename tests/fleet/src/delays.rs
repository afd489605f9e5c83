//! How long simulated hardware takes.

use std::time::Duration;

use clap::Args;
use rand::Rng as _;
use serde_json::{Value, json};

/// A delay lies between so much less and so much more of what is stated.
const SPREAD: f64 = 0.2;

/// Delays of hardware, milliseconds. They say nothing about control: the run states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Delays {
    /// From power to the first boot device
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    pub post_ms: u64,
    /// From a BMC's order to the change of the power
    #[arg(long, value_name = "MS", default_value_t = 200)]
    pub power_ms: u64,
    /// Wiping a disk; all disks of a machine are wiped at once
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub wipe_ms: u64,
    /// Installing an image
    #[arg(long, value_name = "MS", default_value_t = 3000)]
    pub install_ms: u64,
    /// Starting an installed system
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    pub start_ms: u64,
}

impl Delays {
    /// So short that a test does not wait for them.
    #[must_use]
    pub fn short() -> Self {
        Self {
            post_ms: 50,
            power_ms: 20,
            wipe_ms: 50,
            install_ms: 100,
            start_ms: 50,
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "post_ms": self.post_ms, "power_ms": self.power_ms, "wipe_ms": self.wipe_ms,
            "install_ms": self.install_ms, "start_ms": self.start_ms,
        })
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "POST {} ms, power {} ms, wipe {} ms, install {} ms, system start {} ms, each ±{} %",
            self.post_ms,
            self.power_ms,
            self.wipe_ms,
            self.install_ms,
            self.start_ms,
            SPREAD * 100.0
        )
    }
}

/// Waits about `ms` milliseconds, as hardware does.
pub(crate) async fn pass(ms: u64) {
    let share = rand::rng().random_range(1.0 - SPREAD..1.0 + SPREAD);
    tokio::time::sleep(Duration::from_millis(ms).mul_f64(share)).await;
}
