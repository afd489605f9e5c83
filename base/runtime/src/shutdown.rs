//! Orderly shutdown on SIGTERM and SIGINT.

use std::io;
use std::process::exit;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A listener for SIGTERM and SIGINT. While it exists, neither signal ends the process by itself.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs the handlers; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and returns its name.
    pub async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// A token that the first signal cancels. The second signal ends the process at once with exit
/// code 1, for operators who do not want to wait for the orderly shutdown.
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
