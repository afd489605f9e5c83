//! What all parts of the simulation share.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agents_kit::Socket;
use anyhow::{Context as _, Result};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::delays::Delays;
use crate::fabric::Fabric;
use crate::machine::Machine;
use crate::relay::Relay;
use crate::truth::Truth;

/// Sockets that machines share.
pub(crate) const SOCKETS: usize = 8;

/// Ports that the parts of a partition listen on, each at addresses of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) dhcp: u16,
    pub(crate) tftp: u16,
    pub(crate) http: u16,
    pub(crate) redfish: u16,
    pub(crate) ipmi: u16,
}

/// The data centre.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) delays: Delays,
    pub(crate) ports: Ports,
    pub(crate) truth: Truth,
    pub(crate) times: Times,
    pub(crate) machines: Vec<Machine>,
    pub(crate) by_uuid: BTreeMap<Uuid, usize>,
    /// Leaves, by partition.
    pub(crate) fabrics: Vec<Fabric>,
    /// DHCP relays, by partition.
    pub(crate) relays: Vec<Relay>,
    /// Where spans are sent.
    pub(crate) otlp: Option<String>,
    /// Machines join only with what their BMC holds.
    pub(crate) bmc_nonce: bool,
    /// What machines reach control through.
    pub(crate) sockets: Vec<Socket>,
    pub(crate) stop: CancellationToken,
}

impl World {
    /// The socket of a machine, which others share.
    pub(crate) fn socket(&self, number: usize) -> Result<&Socket> {
        let count = self.sockets.len().max(1);
        self.sockets.get(number % count).context("no socket")
    }

    /// The machine of a UUID that control speaks of.
    pub(crate) fn find(&self, uuid: &str) -> Option<&Machine> {
        let number = self.by_uuid.get(&uuid.parse().ok()?)?;
        self.machines.get(*number)
    }
}

/// How long the steps of machines took.
#[derive(Debug, Default)]
pub(crate) struct Times(Mutex<BTreeMap<&'static str, Vec<Duration>>>);

/// Percentiles of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) count: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Times {
    pub(crate) fn add(&self, step: &'static str, took: Duration) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry(step).or_default().push(took);
    }

    /// Every step, by name.
    pub(crate) fn spreads(&self) -> BTreeMap<&'static str, Spread> {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spread = |took: &Vec<Duration>| {
            let mut sorted = took.clone();
            sorted.sort_unstable();
            let at = |percent: usize| {
                let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
                let took = sorted.get(at).copied().unwrap_or_default();
                took.as_secs_f64() * 1000.0
            };
            Spread {
                count: sorted.len(),
                p50_ms: at(50),
                p99_ms: at(99),
            }
        };
        times
            .iter()
            .map(|(step, took)| (*step, spread(took)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let times = Times::default();
        (0..100).for_each(|ms| times.add("step", Duration::from_millis(ms)));
        let spread = times.spreads()["step"];
        assert_eq!(
            (spread.count, spread.p50_ms, spread.p99_ms),
            (100, 50.0, 99.0)
        );
    }
}
