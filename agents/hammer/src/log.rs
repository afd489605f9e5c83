//! The log: short lines on the console; the last ones are kept for the installation report.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, registry};

/// Bytes of `InstallReport.log_tail` at most; older lines are dropped.
const TAIL_MAX: usize = 16 * 1024;

/// The newest lines of the log. Cheap to clone (`Arc`).
#[derive(Debug, Clone, Default)]
pub struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock();
        lines.push_back(line.to_string());
        let mut total: usize = lines.iter().map(|l| l.len() + 1).sum();
        while total > TAIL_MAX {
            total -= lines.pop_front().map_or(total, |l| l.len() + 1);
        }
    }

    /// The lines as text, at most 16 KiB.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = self.0.lock();
        lines.iter().fold(String::new(), |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        })
    }
}

/// Starts logging to standard output and into the tail. `debug` also logs debug messages.
pub fn start(debug: bool) -> Tail {
    let tail = Tail::default();
    let own = if debug { "debug" } else { "info" };
    // quinn_udp warns once on each interface without segmentation offload, which is harmless.
    let filter = EnvFilter::new(format!(
        "warn,quinn_udp=error,metalmesh_hammer={own},agents_hammer={own},agents_kit=info"
    ));
    let layer = ConsoleLayer { tail: tail.clone() };
    // A second start, as in tests, keeps the first subscriber.
    if registry().with(filter).with(layer).try_init().is_err() {
        tracing::debug!("logging is already started");
    }
    tail
}

struct ConsoleLayer {
    tail: Tail,
}

impl<S: Subscriber> Layer<S> for ConsoleLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = format!("[{:8.2}] ", uptime_s());
        match *event.metadata().level() {
            Level::ERROR => line.push_str("ERROR "),
            Level::WARN => line.push_str("warn "),
            _ => {}
        }
        event.record(&mut LineVisitor(&mut line));
        self.tail.push(&line);
        // A console that cannot be written to must not stop an installation.
        drop(writeln!(std::io::stdout().lock(), "{line}"));
    }
}

struct LineVisitor<'a>(&'a mut String);

impl Visit for LineVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let done = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
        debug_assert!(done.is_ok(), "writing to a String cannot fail");
    }
}

/// Seconds since the kernel started. 0 if `/proc` is not mounted yet: process 1 logs before that,
/// and the log cannot report its own failure anywhere else.
pub(crate) fn uptime_s() -> f64 {
    let Ok(text) = std::fs::read_to_string("/proc/uptime") else {
        return 0.0;
    };
    let seconds = text.split_whitespace().next().map(str::parse);
    match seconds {
        Some(Ok(seconds)) => seconds,
        Some(Err(_)) | None => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_bounded_and_keeps_the_newest() {
        let tail = Tail::default();
        for n in 0..5_000 {
            tail.push(&format!("line {n}"));
        }
        let text = tail.text();
        assert!(text.len() <= TAIL_MAX && text.ends_with("line 4999\n"));
        tail.push(&"x".repeat(2 * TAIL_MAX));
        assert!(tail.text().len() <= TAIL_MAX);
    }
}
