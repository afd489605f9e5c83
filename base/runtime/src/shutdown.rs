//! The end of a program: SIGTERM and SIGINT.

use std::io;
use std::process::exit;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// SIGTERM and SIGINT, which no longer end the process by themselves.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Listens from now on; call it inside a tokio runtime.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and names it.
    pub async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// A token that the first signal cancels. The second one ends the process at once: its sender does
/// not want to wait for an orderly end.
///
/// # Errors
/// The handlers cannot be installed.
pub fn stop_on_signal() -> io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut signals = StopSignals::listen()?;
    let cancel = stop.clone();
    #[expect(clippy::disallowed_methods, reason = "lives as long as the process")]
    tokio::spawn(async move {
        let signal = signals.recv().await;
        tracing::info!(signal, "stopping");
        cancel.cancel();
        signals.recv().await;
        exit(1);
    });
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal, raise};

    use super::*;

    #[tokio::test]
    async fn the_first_signal_cancels() {
        let stop = stop_on_signal().unwrap();
        assert!(!stop.is_cancelled());
        raise(Signal::SIGTERM).unwrap();
        stop.cancelled().await;
    }
}
