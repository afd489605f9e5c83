//! Durations of many, as percentiles.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Durations by what took them.
#[derive(Default)]
pub(crate) struct Times(Mutex<BTreeMap<&'static str, Vec<Duration>>>);

impl Times {
    pub(crate) fn add(&self, what: &'static str, took: Duration) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry(what).or_default().push(took);
    }

    pub(crate) fn print(&self) {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (what, all) in times.iter() {
            let mut sorted = all.clone();
            sorted.sort_unstable();
            let at = |percent: usize| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)];
            let (p50, p99) = (at(50).as_millis(), at(99).as_millis());
            println!("{what}: {} times, p50 {p50} ms, p99 {p99} ms", all.len());
        }
    }
}
