//! Metrics of the process, under the standard names of Prometheus client libraries.

use std::fmt;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;

use crate::metrics::Sheet;

/// Unit of the processor times in `/proc`, per second (USER_HZ). Linux uses 100 on every
/// architecture that we build for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Collects the metrics of the own process from `/proc`, at each scrape.
#[derive(Debug)]
pub struct Process {
    program: &'static str,
    version: &'static str,
    started_s: f64,
}

impl Process {
    /// A collector for a program that starts now.
    pub fn new(program: &'static str, version: &'static str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            program,
            version,
            started_s: now.unwrap_or_default().as_secs_f64(),
        }
    }
}

/// Resident memory of the process, bytes. 0 if `/proc` cannot be read.
pub(crate) fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    number_after(&status, "VmRSS:").unwrap_or(0) * 1024
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Processor time in user and kernel mode, seconds.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The second field is the program name in parentheses. It may contain spaces and parentheses,
    // so the fields are counted from the last closing one.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS_PER_SECOND)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus knows floating-point numbers only"
)]
fn float(number: u64) -> f64 {
    number as f64
}

impl Collector for Process {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet::new(encoder);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let bytes = Some(Unit::Bytes);
        sheet.info(
            "metalmesh_build",
            "Which program this is",
            &[
                ("program", self.program.into()),
                ("version", self.version.into()),
            ],
        )?;
        sheet.counter_f64(
            "process_cpu",
            "Processor time of the process",
            Some(Unit::Seconds),
            cpu_seconds(&stat).unwrap_or(0.0),
        )?;
        let rss = resident_bytes();
        let help = "Memory of the process that is in RAM";
        sheet.gauge("process_resident_memory", help, bytes, float(rss))?;
        let open = u64::try_from(open).unwrap_or(u64::MAX);
        let help = "Open file descriptors";
        sheet.gauge("process_open_fds", help, None, float(open))?;
        let max = number_after(&limits, "Max open files").unwrap_or(0);
        let help = "Most file descriptors that may be open";
        sheet.gauge("process_max_fds", help, None, float(max))?;
        let threads = number_after(&status, "Threads:").unwrap_or(0);
        sheet.gauge("process_threads", "Threads", None, float(threads))?;
        sheet.gauge(
            "process_start_time",
            "When the process began, seconds since 1970",
            Some(Unit::Seconds),
            self.started_s,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_no_riddle() {
        let stat = "7 (a) b)) S 1 7 7 0 -1 4194304 5 0 0 0 250 50 0 0 20 0 3 0 88 1 1";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert!(resident_bytes() > 100_000);
    }
}
